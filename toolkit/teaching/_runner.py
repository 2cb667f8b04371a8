"""The process in which `grade` runs students' code. It forks for each notebook, and for each answer tried in a story.

All that a fork can send is an answer that the student could have given anyway, so students gain nothing by changing
this code in memory. The limits guard against mistakes and block what no lesson needs, but they are not a sandbox. If
the kernel allows it, each fork has its own isolated network.

The parent writes one `Job` per line. After each job, this process writes the reason if the fork was stopped, or an
empty string if it finished. The fork writes its findings to a file.
"""

from __future__ import annotations

import ast
import ctypes
import os
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from toolkit.client._http import embedded_ledger
from toolkit.teaching._answers import Answer, answer_of
from toolkit.teaching._jobs import FOUND, Found, Job, Notebook

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP, _IFREQ = 0x8914, 1, 40
# Audit events of what no lesson does: other processes, other hosts, other people's files.
_REFUSED = ("os.exec", "os.fork", "os.kill", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
_FILES = ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate")
_CHANGES = {f"os.{verb}" for verb in _FILES}
_MAX_FILE = 64 << 20  # bytes of a file that a notebook writes
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def main() -> None:
    """Run the jobs on stdin, one after another."""
    os.environ |= {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    # Imported before forking, so that notebooks start without delay.
    for name in ("IPython.core.interactiveshell", "matplotlib.pyplot", "toolkit.plots", "toolkit.teaching._story"):
        import_module(name)
    embedded_ledger()
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line, type=Job)
        sys.stdout.buffer.write(msgspec.json.encode(_forked(job)) + b"\n")
        sys.stdout.buffer.flush()


def _forked(job: Job) -> str:
    """Run a job in a fork; return the reason if it was stopped, or else an empty string."""
    child = os.fork()
    if not child:
        try:
            _confine(job)
            _work(job)
        finally:
            os._exit(0)
    deadline = time.monotonic() + job.seconds
    try:
        while time.monotonic() < deadline:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return _ending(status, job)
            time.sleep(0.02)
        return f"stopped at the time limit of {job.seconds:g} s"
    finally:
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        with suppress(OSError):
            os.waitpid(child, 0)


def _ending(status: int, job: Job) -> str:
    if not os.WIFSIGNALED(status):
        return ""
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
        return f"stopped at the time limit of {job.seconds:g} s"
    return f"stopped by {signal.Signals(number).name}; the memory limit is {job.memory_mb:,} MB"


def _confine(job: Job) -> None:
    """Limit the resources of this process and its access to files and the network."""
    os.setsid()
    os.chdir(job.folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.closerange(3, 1 << 10)
    os.environ |= {"HOME": job.folder, "TMPDIR": job.folder, "IPYTHONDIR": job.folder}
    pages = Path("/proc/self/statm").read_text("ascii").split()[0] if sys.platform == "linux" else 0
    size = int(pages) * resource.getpagesize()  # what the toolkit and its ledger already use
    limits = {
        resource.RLIMIT_AS: size + (job.memory_mb << 20),
        resource.RLIMIT_CPU: int(job.seconds) + 1,
        resource.RLIMIT_FSIZE: _MAX_FILE,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        with suppress(ValueError, OSError):  # macOS cannot limit the address space
            resource.setrlimit(limit, (value, value))
    _leave_network()
    own, hidden = f"{os.path.realpath(job.folder)}/", tuple(f"{os.path.realpath(one)}/" for one in job.hidden)
    sys.addaudithook(lambda event, arguments: _audit(event, arguments, own, hidden))


def _leave_network() -> None:
    """If the kernel allows it, move to a network with only a loopback interface, which the embedded node needs."""
    with suppress(AttributeError, OSError):
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
            import fcntl

            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                request = struct.pack("16sh", b"lo", _IFF_UP).ljust(_IFREQ, b"\0")
                fcntl.ioctl(any_socket, _SIOCSIFFLAGS, request)


def _audit(event: str, arguments: tuple[Any, ...], own: str, hidden: tuple[str, ...]) -> None:
    """Raise PermissionError for operations that no lesson needs."""
    if event == "open" and not isinstance(arguments[0], int):
        path, mode, flags = arguments
        place = os.path.realpath(os.fsdecode(path))
        writes = flags & (os.O_WRONLY | os.O_RDWR) or set(mode or "") & set("wax+")
        if place != os.devnull and not place.startswith(own) and (writes or f"{place}/".startswith(hidden)):
            raise PermissionError(f"graded notebooks cannot access {place}")
    elif event.startswith(_REFUSED) or (event in _CHANGES and not _is_in(own, arguments)):
        raise PermissionError(f"graded notebooks cannot use {event}")
    elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in _LOOPBACK:
        raise PermissionError("graded notebooks cannot access the network")


def _is_in(own: str, arguments: tuple[Any, ...]) -> bool:
    """Return whether the first file that an audit event names is in a folder."""
    if isinstance(arguments[0], int):  # a file that is already open
        return True
    base = f"/proc/self/fd/{arguments[-1]}" if isinstance(arguments[-1], int) and arguments[-1] >= 0 else "."
    return os.path.realpath(os.path.join(base, os.fsdecode(arguments[0]))).startswith(own)  # noqa: PTH118 - a path of bytes


def _work(job: Job) -> None:
    """Run a job. Each finding is written immediately, because the next cell may never end."""
    with (Path(job.folder) / FOUND).open("wb", buffering=0) as file:

        def found(one: Found) -> None:
            file.write(msgspec.json.encode(one) + b"\n")

        if job.answer is None:
            _run_notebook(job, found)
        else:
            from toolkit.teaching._story import what_happens

            found(Found(problem=what_happens(job.steps, job.answer)))


class _CellTimeoutError(BaseException):
    """A cell exceeded its time limit. Not a subclass of Exception, which the cell may catch."""


def _run_notebook(job: Job, found: Callable[[Found], None]) -> None:
    """Run the cells of a notebook in order, even after failures, and record the answers that they check."""
    from IPython.core.interactiveshell import InteractiveShell
    from matplotlib import pyplot as plt
    from traitlets.config import Config

    from toolkit import teaching

    teaching.check = lambda *_: None  # type: ignore[assignment] # judged later, outside
    config = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell.instance(config=config)  # IPython has no types
    shell.showtraceback = shell.showsyntaxerror = lambda *_, **__: None
    signal.signal(signal.SIGALRM, _stop)
    first = ""
    for number, cell in enumerate(msgspec.json.decode(Path(job.notebook).read_bytes(), type=Notebook).cells, start=1):
        if cell.cell_type != "code":
            continue
        signal.setitimer(signal.ITIMER_REAL, job.seconds / 4)  # a cell may take a quarter of the notebook's time
        done = shell.run_cell(cell.text, silent=True)
        error = done.error_before_exec or done.error_in_exec
        for exercise in cell.exercises:
            if error is None:
                answer, error = _answer(shell, cell.text, exercise)
                found(Found(exercise, answer))
            if error is not None:
                found(Found(exercise, problem=f"cell {number}: {_said(error)}{first}"))
        signal.setitimer(signal.ITIMER_REAL, 0)
        if error is not None and not first:
            first = f"; the first cell to fail was cell {number}: {_said(error)}"
        plt.close("all")


def _stop(*_: object) -> None:
    raise _CellTimeoutError


def _answer(shell: Any, source: str, exercise: str) -> tuple[Answer | None, BaseException | None]:
    """Return the answer that a cell checks (None for dots), and the error if evaluating it fails."""
    names = shell.user_ns
    expressions = [
        node.args[1]
        for node in ast.walk(ast.parse(shell.transform_cell(source)))
        if isinstance(node, ast.Call) and len(node.args) > 1 and ast.unparse(node.args[0]) == repr(exercise)
    ]
    try:
        code = compile(ast.Expression(expressions[-1]), "<answer>", "eval") if expressions else "answer"
        value = eval(code, names)  # noqa: S307 - the notebook's own code
        return (None if value is ... else answer_of(value)), None
    except BaseException as error:  # noqa: BLE001 - whatever a student's code raises
        return None, error


def _said(error: BaseException) -> str:
    if isinstance(error, _CellTimeoutError):
        return "timed out; a cell may take a quarter of the notebook's time limit"
    return f"{type(error).__name__}: {error}"[:500]
