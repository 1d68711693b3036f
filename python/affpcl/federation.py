"""The parties of a federation, for whatever carries their messages: affpcl.flare does it over NVIDIA FLARE.

A site is a process of the command line program (`affpcl fit ... --site NAME`) that reads its own rows and answers the
centre's messages; the centre adds what the sites send. Whoever carries messages sends the centre's `message()` to all
sites and hands the answers to `take`, until the centre is done:

    centre = FederationCentre(["north", "south", "east"], {"key": "trial", "secure": True}, journal=None)
    sites = {name: FederationSite(name, "fit", {"data": f"{name}.csv", "target": "y"}, f"out/{name}", job="trial") ...}
    while centre.state == "running":
        message = centre.message()
        for name in centre.expected():
            centre.take(name, sites[name].reply(message))
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import struct
import subprocess
import sysconfig
import tempfile
from typing import Any, Mapping

from affpcl import _core

__all__ = ["FederationCentre", "FederationSite", "program"]

# What a transport may say beside the options of the task.
BESIDE = ("data", "sites", "secure", "min_sites", "privacy", "may_leave")
LENGTH = struct.Struct("<Q")


def program() -> str:
    """The command line program: AFFPCL_PROGRAM, beside this Python, or on the PATH."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "affpcl"
    found = os.environ.get("AFFPCL_PROGRAM") or (str(beside) if beside.exists() else shutil.which("affpcl"))
    if not found:
        raise RuntimeError("the program affpcl is not on the PATH; AFFPCL_PROGRAM may name it")
    return found


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Options of a task as the command line has them: {"row_weight": "w"} is --row-weight w."""
    words: list[str] = []
    for name, value in options.items():
        if name in BESIDE or name == "score" or value is None or value is False or value == []:
            continue
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif name in ("with", "set"):
            words += [f"{option}={file}" for file in ([value] if isinstance(value, str) else value)]
        else:  # one word, so that no value is taken for an option
            text = ",".join(quoted(str(v)) for v in value) if isinstance(value, (list, tuple)) else str(value)
            words.append(f"{option}={text}")
    if options.get("score") is False:
        words.append("--no-score")
    return words


def study_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a study at a site: its files and its column of agents replace the study's."""
    own = dict(options)
    own.pop("spec")
    words = []
    for key in ("file", "with", "weights", "agent"):
        value = own.pop(key, None)
        files = value if isinstance(value, list) else [] if value is None else [value]
        if len(files) > 1:
            raise ValueError(f"a study has one file as `{key}`, not {len(files)}")
        words += [f"problem.{key}={file}" for file in files]
    return {**own, "set": words}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if "," in name or '"' in name else name


class FederationSite:
    """One site: its rows stay in its own process. `options` has `data` and the options of the task; of a study, task
    "run", they are `spec`, its text, and the site's own `with`, `weights`, `agent` and `threads`."""

    def __init__(self, name: str, task: str, options: Mapping[str, Any], out: str, *, job: str) -> None:
        data = options["data"]
        files = [data] if isinstance(data, str) else list(data)
        self._spec: Any = None  # of a study, its text in a file
        if task == "run":
            self._spec = tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8")
            self._spec.write(options["spec"])
            self._spec.flush()
            options, files = study_options({**options, "file": files}), [self._spec.name]
        command = [program(), task, *files, *arguments(options),
                   "--site", name, "--job", job, "--out", out, "--force", "--quiet"]
        if options.get("may_leave"):
            command.append("--may-leave")
        if options.get("secure") is False:
            command.append("--unmasked")
        self.name, self.done, self.progress = name, False, 0.0
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)

    def reply(self, message: bytes) -> bytes:
        """The answer to a message of the centre. ValueError, with the site's own sentence, where it cannot go on."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(LENGTH.pack(len(message)) + message)
            process.stdin.flush()
        except BrokenPipeError:
            raise ValueError(self._sentence()) from None
        answer = self._read(self._length())
        kind = _core.message_kind(answer)
        self.progress = max(self.progress, _core.message_progress(answer))
        if kind == "refused":
            raise ValueError(self._sentence())
        if _core.message_kind(message) == "end":
            if process.wait() != 0:
                raise ValueError(self._sentence())
            self.done = True
        return answer

    @property
    def killed(self) -> bool:
        """Whether a signal has ended the site's process."""
        return (self._process.poll() or 0) < 0

    def close(self) -> None:
        """Ends the site's process."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what was not written to a process that has ended
                    pipe.close()
        if self._spec is not None:
            self._spec.close()

    def _length(self) -> int:
        return int(LENGTH.unpack(self._read(LENGTH.size))[0])

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise ValueError(self._sentence())
        return data

    def _sentence(self) -> str:
        """The last line of what the program said."""
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("affpcl: ") if lines else f"its program ended with code {self._process.returncode}"


class FederationCentre:
    """The centre, which adds. `job` has its `key`, which all sites have too, `secure` and `min_sites`."""

    def __init__(self, sites: list[str], job: Mapping[str, Any], journal: str | None = None) -> None:
        self._centre = _core.FederationCentre(job["key"], sites, min_sites=job.get("min_sites", 0),
                                              secure=job.get("secure", True), journal=journal or "")
        self._lost: list[str] = []

    def message(self) -> bytes:
        return self._centre.message()

    def expected(self) -> list[str]:
        return self._centre.expected()

    def take(self, site: str, reply: bytes) -> None:
        self._centre.take(site, reply)

    def lost(self, site: str) -> None:
        """The site does not answer: the others go on without it if its settings and min_sites allow, or wait."""
        self._centre.lost(site)
        self._lost.append(site)
        if self._centre.may_drop():
            self._centre.drop_lost()
            self._lost.clear()

    def back(self, site: str) -> None:
        self._centre.back(site)
        self._lost.remove(site)

    @property
    def lost_sites(self) -> list[str]:
        """Sites that the job waits for."""
        return [site for site in self._lost if site in self.sites]

    @property
    def sites(self) -> list[str]:
        return self._centre.sites

    @property
    def state(self) -> str:
        return self._centre.state

    @property
    def status(self) -> str:
        return self._centre.status

    @property
    def progress(self) -> float:
        return self._centre.progress

    @property
    def rounds(self) -> int:
        return self._centre.rounds

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes centre.json, the model that all sites have in common, and ledger.json."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "centre.json").write_text(self._centre.model, encoding="utf-8")
        (folder / "ledger.json").write_text(self._centre.ledger, encoding="utf-8")
