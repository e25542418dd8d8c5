"""The connection to an API server: credentials, requests, and objects kept up to date by watching.

Objects go out to a sink, requests come in as paths and bytes. The client does not know what they
mean for scheduling.
"""

from .api import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Api
from .api_errors import ApiError, ClientError, OutcomeUnknown, Unreachable
from .connection import Connection
from .credentials import CredentialsError, connect
from .reflector import Reflector, Sink

__all__ = [
    "JSON_PATCH",
    "MERGE_PATCH",
    "STRATEGIC_MERGE_PATCH",
    "Api",
    "ApiError",
    "ClientError",
    "Connection",
    "CredentialsError",
    "OutcomeUnknown",
    "Reflector",
    "Sink",
    "Unreachable",
    "connect",
]
