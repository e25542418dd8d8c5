"""Flags that several commands take: each is said here once, so that they agree.

The default is with each command. Nothing is loaded for them but typer.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CONNECTION, SCHEDULER, SERVING, LOGS = "Connection", "A running scheduler", "Serving", "Logs"


class Output(StrEnum):
    """How the answer to a question is written."""

    TABLE = "table"
    JSON = "json"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# What a command decides by.

ConfigOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration.")
]
FeatureGatesOption = Annotated[
    str, typer.Option(metavar="A=true,B=false", help="Feature gates to switch.")
]
PluginsOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="A file with plugins, beside those of packages; enabled unless there is a --config.",
        show_default=False,
    ),
]

# What a question is about, and how it is answered.

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH...]",
        help="YAML or JSON files or directories; without any, a cluster is listed once.",
        show_default=False,
    ),
]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to write the answer.")]

#: For commands with ways of writing of their own: `Annotated[Output, OUTCOME]`.
OUTCOME = typer.Option("--output", "-o", help="How to write the outcome.")

# How to reach an API server.

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="How to reach the API server: else $KUBECONFIG, ~/.kube/config, in-cluster.",
        rich_help_panel=CONNECTION,
    ),
]
ContextOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="A context of it.", rich_help_panel=CONNECTION)
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The API server, in place of its.", rich_help_panel=CONNECTION
    ),
]

# How to reach a scheduler at work.

UrlOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Ask the scheduler that serves there, such as https://localhost:10259.",
        rich_help_panel=SCHEDULER,
    ),
]
TokenOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        envvar="MOORING_TOKEN",
        help="A bearer token for it.",
        rich_help_panel=SCHEDULER,
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A file with the token.", rich_help_panel=SCHEDULER),
]
CertificateAuthorityOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Whose certificates are trusted.", rich_help_panel=SCHEDULER),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure-skip-tls-verify",
        help="Trust any certificate, such as one that it signed itself.",
        rich_help_panel=SCHEDULER,
    ),
]

# Where something is served.

SecurePortOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=65535,
        help="Where health, metrics and configuration are served by HTTPS; 0 serves nothing.",
        rich_help_panel=SERVING,
    ),
]
BindAddressOption = Annotated[str, typer.Option(metavar="ADDRESS", rich_help_panel=SERVING)]
TlsCertFileOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Its certificate; without one, Mooring signs its own.",
        rich_help_panel=SERVING,
    ),
]
TlsPrivateKeyFileOption = Annotated[str, typer.Option(metavar="FILE", rich_help_panel=SERVING)]
CertDirOption = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Where a certificate that Mooring signed itself is kept.",
        rich_help_panel=SERVING,
    ),
]

# What is told while a command runs.

LogFormatOption = Annotated[LogFormat, typer.Option(rich_help_panel=LOGS)]
LogLevelOption = Annotated[LogLevel, typer.Option(rich_help_panel=LOGS)]
