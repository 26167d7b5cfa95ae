"""The lab's one tree of exceptions: every message says what to correct, and where.

Messages are written for whoever typed the command.

    LabError
      FileInvalid          a file that a command was given cannot be used; names the file and the line
        LogInvalid           it is not a decision log
        TraceInvalid         it is not a trace of requests
      OptionInvalid        an option of a command cannot be used, or is missing
      NothingToServe       there is no pool that could be served in the files that a command was given
      PortTaken            somebody else listens where a command was to
      CertificateInvalid   a certificate, or its key, cannot be used to listen with
      SettingsInvalid      a simulated engine cannot be built from these settings
      ProcessFailed        a process that a command runs did not start, or ended too early
      OutputInvalid        nothing can be written where a command was told to
      Interrupted          a signal ended the command; all that it had started has ended too
      MachineLacks         a program, a library or a core that a command needs
      FaultUnknown         a fault was asked for that no engine knows
      Refusal              what a simulated engine answers instead of tokens: one HTTP status, one body
"""

from __future__ import annotations


class LabError(Exception):
    """The root: catches whatever this package raises on purpose."""


class FileInvalid(LabError):
    """A file cannot be used. `line` counts from 1; None where the file as a whole is meant."""

    def __init__(self, source: str, line: int | None, problem: str) -> None:
        super().__init__(f"{source}: {problem}" if line is None else f"{source}:{line}: {problem}")
        self.source = source
        self.line = line
        self.problem = problem


class LogInvalid(FileInvalid):
    """The file is not a decision log, or not a whole one."""


class TraceInvalid(FileInvalid):
    """The file is not a trace of requests."""


class OptionInvalid(LabError):
    """An option of a command cannot be used, or one that it needs is missing."""


class NothingToServe(LabError):
    """The files that a command was given hold no pool that could be served."""


class PortTaken(LabError):
    """A port that a command was to listen on is not to be had."""


class CertificateInvalid(LabError):
    """A certificate, or its key, cannot be used to listen with."""


class SettingsInvalid(LabError):
    """A simulated engine cannot be built from these settings."""


class ProcessFailed(LabError):
    """A process that a command runs did not start, or ended too early; `quoted` is what it said last."""

    def __init__(self, problem: str, quoted: str = "") -> None:
        super().__init__(f"{problem}{quoted}")
        self.problem = problem


class OutputInvalid(LabError):
    """Nothing can be written where a command was told to."""


class Interrupted(LabError):
    """A signal ended the command; all that it had started has ended too. `status` is what shells expect then."""

    def __init__(self, signal_number: int) -> None:
        super().__init__("interrupted; every process has ended")
        self.status = 128 + signal_number


class MachineLacks(LabError):
    """A command needs a program, a library or a core that this machine lacks; says how to get it."""


class FaultUnknown(LabError):
    """A fault was asked for that no engine knows."""


class Refusal(LabError):
    """An error answer of a simulated engine. `kind` and `param` are the body's `type` and `param`."""

    def __init__(self, status: int, message: str, *, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param
