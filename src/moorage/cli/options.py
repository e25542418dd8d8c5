"""Options that several commands take, defined once so that the commands agree.

The default of an option is part of each command. This module imports nothing but typer.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

CONNECTION, SCHEDULER, SERVING, LOGS = "API server", "Running scheduler", "Serving", "Logs"
_PODS = "Pods"


class AnswerFormat(StrEnum):
    """The formats in which commands print their answer; some have more."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# The engine.

ConfigOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read this KubeSchedulerConfiguration.")
]
FeatureGatesOption = Annotated[
    str, typer.Option(metavar="A=true,B=false", help="Switch these feature gates on or off.")
]
EmulationVersionOption = Annotated[
    str,
    typer.Option(
        "--emulation-version",
        "--emulated-version",
        metavar="VERSION",
        help="Decide and write messages as kube-scheduler of this version does, 1.36 or 1.37. "
        "Default: the version of the API server; 1.36 without one.",
        show_default=False,
    ),
]
PluginsOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="Load plugins from this Python file, in addition to installed ones. Without "
        "--config, all of them are enabled. May be repeated.",
        show_default=False,
    ),
]

# Input and output.

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help="YAML or JSON files or folders that describe the cluster; - is standard input. "
        "Without a path, the cluster is read from the API server.",
        show_default=False,
    ),
]
FromOption = Annotated[
    list[str] | None,
    typer.Option("--from", metavar="PATH", help="The same as PATH. May be repeated."),
]
OutputOption = Annotated[AnswerFormat, typer.Option("--output", "-o", help="Output format.")]

#: For commands with output formats of their own: `Annotated[TheirFormat, OUTPUT]`.
OUTPUT = typer.Option("--output", "-o", help="Output format.")

# Commands that watch.

ForOption = Annotated[
    float | None,
    typer.Option(
        "--for", metavar="SECONDS", min=0.0, help="Stop after this time. Default: run until Ctrl-C."
    ),
]

# The API server.

KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Kubeconfig file to use. Default: $KUBECONFIG, then ~/.kube/config, then the "
        "service account of the pod.",
        rich_help_panel=CONNECTION,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the kubeconfig context to use.",
        rich_help_panel=CONNECTION,
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the API server. Overrides the address in the kubeconfig.",
        rich_help_panel=CONNECTION,
    ),
]

# A running scheduler.

UrlOption = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="Ask the running scheduler at this address, such as https://localhost:10259.",
        rich_help_panel=SCHEDULER,
    ),
]
TokenOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT",
        envvar="MOORAGE_TOKEN",
        help="Bearer token for the running scheduler.",
        rich_help_panel=SCHEDULER,
    ),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Read the bearer token from this file.", rich_help_panel=SCHEDULER
    ),
]
CertificateAuthorityOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Trust certificates that this certificate authority has signed.",
        rich_help_panel=SCHEDULER,
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure-skip-tls-verify",
        help="Do not check the scheduler's certificate.",
        rich_help_panel=SCHEDULER,
    ),
]

# Serving.

SecurePortOption = Annotated[
    int,
    typer.Option(
        metavar="PORT",
        min=0,
        max=65535,
        help="HTTPS port for health, metrics, configuration and the page. 0 serves nothing.",
        rich_help_panel=SERVING,
    ),
]
BindAddressOption = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="Address to listen on.", rich_help_panel=SERVING),
]
TlsCertFileOption = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Certificate to serve with. Without one, Moorage signs its own.",
        rich_help_panel=SERVING,
    ),
]
TlsPrivateKeyFileOption = Annotated[
    str,
    typer.Option(metavar="FILE", help="Private key of the certificate.", rich_help_panel=SERVING),
]
CertDirOption = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the certificate that Moorage signs itself.",
        rich_help_panel=SERVING,
    ),
]

# Pods without containers.

RunSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="How long a pod runs before it succeeds, unless its restart policy is Always.",
        rich_help_panel=_PODS,
    ),
]
StartSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0, metavar="SECONDS", help="How long a pod takes to start.", rich_help_panel=_PODS
    ),
]
StopSecondsOption = Annotated[
    float,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="How long a pod takes to stop; at most its grace period.",
        rich_help_panel=_PODS,
    ),
]
# Logs.

LogFormatOption = Annotated[
    LogFormat, typer.Option(help="Format of the log.", rich_help_panel=LOGS)
]
LogLevelOption = Annotated[
    LogLevel,
    typer.Option(help="Log messages of this level and above.", rich_help_panel=LOGS),
]
