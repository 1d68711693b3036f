"""A federation over NVIDIA FLARE 2.9: `affpcl federate JOB.toml` with engine = "sim", "poc" or "production" runs this.

FLARE carries the messages between the centre, which is its server, and the sites, which are its clients. At each site a
process of the program reads the rows, which never leave it (see affpcl.federation). What is sent is masked by the sites
themselves, below FLARE's own encryption: FLARE's server cannot read the part of a single site.

    from affpcl.flare import recipe
    recipe(job).execute(ProdEnv(startup_kit_location="admin@example.org"))

`job` is a dictionary: name, sites, min_sites, secure, and fit, with the options of the task by name.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from typing import Any, Iterator, Mapping

from affpcl.federation import FederationCentre, FederationSite

INSTALL = "pip install 'affpcl[flare]'"
try:
    from nvflare.collab import collab
except ImportError as error:
    raise ImportError(f"affpcl.flare needs NVIDIA FLARE, which is not installed: {INSTALL}") from error

__file__ = os.path.realpath(__file__)  # FLARE refuses sources behind a symbolic link

__all__ = ["Centre", "Site", "SiteRefused", "job_key", "recipe", "run"]

MARK = "AFFPCL_FEDERATION"  # in the environment of all processes of a job that this machine runs itself
SETTINGS = "affpcl.toml"  # a site's own settings, in the folder `local` of its startup kit
CLASSES = ["affpcl.flare", "nvflare.collab"]  # that a party's FLARE has to allow; no code travels with a job
OWN = ("data", "may_leave", "with", "agent", "exclude", "sep", "decimal", "encoding", "na", "skip", "comment", "threads",
       "out", "tasks", "unmasked")
PATIENCE = 60.0  # seconds that the centre waits for a site that may come back
LOGIN = 60.0  # seconds for logging in to FLARE's server
LOOK = 0.1  # seconds between looks at what was written


class SiteRefused(Exception):
    """The site cannot go on, or does not want to; this ends the job."""


def job_key(job: Mapping[str, Any]) -> str:
    """A hash of what all parties agree to. Every site makes it from what it was asked, so that a site that was asked
    something else than the others cannot read or spoil their sums."""
    agreed = {name: job.get(name) for name in ("name", "task", "sites", "min_sites", "secure", "fit")}
    return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()[:32]


def own_settings(name: str, job: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """What the site itself says: from its own file, or from the job's where one machine runs all sites."""
    if job.get("engine") in ("sim", "poc"):
        return dict(job["site"][name])
    path = pathlib.Path(os.environ.get("AFFPCL_SITE") or pathlib.Path(folder) / SETTINGS)
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef]
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise SiteRefused(f"there is no file {path} with the site's own settings") from None
    try:
        sections = tomllib.loads(text).get("site", {})
    except tomllib.TOMLDecodeError as error:
        raise SiteRefused(f"{path}: {error}") from None
    if name not in sections:
        raise SiteRefused(f"{path} has no section [site.{name}]")
    settings: dict[str, Any] = sections[name]
    for key in settings:
        if key not in OWN:
            raise SiteRefused(f"{path}: site.{name}.{key} is not a known key; allowed: {', '.join(OWN)}")
    if "data" not in settings:
        raise SiteRefused(f"{path}: site.{name}.data is missing: the site's file")
    if job["task"] not in settings.get("tasks", ["fit"]):
        raise SiteRefused(f"{path}: site.{name}.tasks does not have '{job['task']}'")
    if not job["secure"] and not settings.get("unmasked"):
        raise SiteRefused(f"the job has secure = false, which {path} does not allow (site.{name}.unmasked = true would)")
    base = path.parent
    for key in ("data", "with"):
        files = settings.get(key, [])
        settings[key] = [str(base / f) for f in ([files] if isinstance(files, str) else files)]
    return settings


class Site:
    """FLARE's client: it passes the centre's messages to the site's process, and the answers back."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._process: FederationSite | None = None
        self._name = ""
        self._why = ""

    @collab.publish
    def answer(self, message: bytes) -> bytes:
        """The answer to the centre's message."""
        with self._lock:
            process = self._process or self._start()
            try:
                return process.reply(message)
            except ValueError as error:
                killed = process.killed
                process.close()
                self._process = None
                if killed:
                    raise
                raise self._refusal(str(error)) from None

    @collab.publish
    def ready(self) -> bool:
        """Starts the site's process where it does not run."""
        with self._lock:
            if self._process is None:
                self._start()
            return True

    @collab.final
    def close(self) -> None:
        """Ends the site's process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _start(self) -> FederationSite:
        job = json.loads(self.job)
        name = self._name = collab.site_name
        try:
            settings = own_settings(name, job, collab.workspace.get_site_config_dir())
        except SiteRefused as error:
            raise self._refusal(str(error)) from None
        if job.get("engine") in ("sim", "poc"):
            out = pathlib.Path(job["out"]) / name
        else:
            here = pathlib.Path(settings.pop("out", None) or pathlib.Path(collab.workspace.get_root_dir()) / "affpcl")
            out = here / f"{job['name']}-{collab.fl_ctx.get_job_id()[:8]}"
            out.parent.mkdir(parents=True, exist_ok=True)
        options = {**job["fit"], **settings, "report": job.get("report", False), "secure": job["secure"]}
        self._process = FederationSite(name, job["task"], options, str(out), job=job_key(job))
        return self._process

    def _refusal(self, sentence: str) -> SiteRefused:
        """What the site says may name values of its rows: it leaves the site only where one machine runs all."""
        self._why = sentence
        logging.getLogger("affpcl").error("%s: %s", self._name or collab.site_name, sentence)
        if json.loads(self.job).get("engine") in ("sim", "poc"):
            return SiteRefused(sentence)
        return SiteRefused("it cannot go on; its own log says why")


class Centre:
    """FLARE's server: it adds what the sites send."""

    def __init__(self, job: str) -> None:
        self.job = job

    @collab.main
    def run(self) -> None:
        """Sends messages until the job is done. What it found is in the folder `centre`."""
        job = json.loads(self.job)
        log = logging.getLogger("affpcl")
        said = open(job["events"], "a", encoding="utf-8") if job.get("events") else None

        def say(**what: Any) -> None:
            if said is not None:
                said.write(json.dumps(what) + "\n")
                said.flush()

        local = job.get("engine") in ("sim", "poc")
        if local:
            out, journal = pathlib.Path(job["out"]) / "centre", job["journal"]
        else:
            job_id = collab.fl_ctx.get_job_id()
            out = pathlib.Path(collab.workspace.get_run_dir(job_id)) / "centre"
            kept = pathlib.Path(collab.workspace.get_root_dir()) / "affpcl"
            kept.mkdir(parents=True, exist_ok=True)
            journal = str(kept / f"{job_key(job)}.journal")
        start = time.monotonic()
        try:
            centre = FederationCentre(job["sites"], {**job, "key": job_key(job)}, journal)
            shown = -1.0
            while centre.state == "running":
                self._round(centre, job["timeout"])
                if centre.state == "waiting":
                    log.warning(centre.status)
                    say(note=centre.status)
                    self._wait(centre)
                if centre.progress >= shown + 0.01:
                    shown = centre.progress
                    log.info("%3.0f %%, %s", 100 * shown, centre.status)
                    say(progress=shown)
            if centre.state != "done":
                raise RuntimeError(centre.status)
        except Exception as error:
            log.error("%s", error)
            say(error=str(error), input=isinstance(error, (SiteRefused, ValueError)))
            raise
        centre.save(out)
        pathlib.Path(journal).unlink(missing_ok=True)
        log.info("done after %d sums", centre.rounds)
        say(done=centre.sites, rounds=centre.rounds, seconds=time.monotonic() - start)

    def _round(self, centre: FederationCentre, timeout: float) -> None:
        """The centre's message to all sites whose answer is missing, and their answers."""
        message, names = centre.message(), centre.expected()
        connected = {client.name for client in collab.clients}
        for name in names:
            if name not in connected:
                raise ValueError(f"the site '{name}' is not connected")
        replies = collab.get_clients(names)(timeout=timeout).answer(message)
        refused: dict[str, list[str]] = {}
        for name, error in replies.failures.items():
            if error.cause_type == "SiteRefused":
                refused.setdefault(sentence(error), []).append(name)
        if refused:  # of sites that disagree, the few that are different say it best
            why, who = min(refused.items(), key=lambda item: len(item[1]))
            raise SiteRefused(f"site{'s' * (len(who) > 1)} {', '.join(map(repr, sorted(who)))}: {why}")
        for name, reply in replies:
            centre.take(name, reply)
        for name in replies.failures:
            centre.lost(name)

    def _wait(self, centre: FederationCentre) -> None:
        """Asks the lost sites for a while whether they are back."""
        until = time.monotonic() + PATIENCE
        missing = centre.lost_sites
        while missing and not collab.is_aborted:
            replies = collab.get_clients(missing)(timeout=5.0).ready()
            for name, _ in replies:
                missing.remove(name)
                centre.back(name)
            if missing and time.monotonic() > until:
                raise RuntimeError(f"{centre.status}, but it does not come back; the same job goes on from the centre's journal")


def sentence(error: Any) -> str:
    """What a site said, without the name of the exception that carried it."""
    text = str(error.cause)
    return text.removeprefix("SiteRefused:").strip()


def recipe(job: Mapping[str, Any]) -> Any:
    """The job as FLARE has it: `recipe(job).execute(env)` runs it in any of its environments.

    No code travels with it: every party runs the affpcl that it has installed."""
    from nvflare.collab import CollabRecipe

    class Installed(CollabRecipe):  # type: ignore[misc]
        @staticmethod
        def _user_source_entries(objs: Any) -> list[Any]:
            return []

    complete = {"task": "fit", "min_sites": 0, "secure": True, "timeout": 600, "fit": {}, "engine": "production", **job}
    text = json.dumps(complete)
    made = Installed(job_name=complete["name"], server=Centre(text), client=Site(text),
                     min_clients=complete["min_sites"] or len(complete["sites"]))
    made._job.set_app_packages(["affpcl"])
    return made


def allow(kit: str | os.PathLike[str]) -> None:
    """Lets FLARE of this startup kit run the classes of affpcl: adds them to its local/resources.json."""
    local = pathlib.Path(kit) / "local"
    resources = local / "resources.json"
    found = resources if resources.exists() else local / "resources.json.default"
    if found.exists():
        content = json.loads(found.read_text(encoding="utf-8"))
    else:
        from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST

        content = {"format_version": 2, "class_allow_list": list(DEFAULT_CLASS_ALLOW_LIST)}
    classes = content.setdefault("class_allow_list", [])
    classes.extend(name for name in CLASSES if name not in classes)
    local.mkdir(parents=True, exist_ok=True)
    resources.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def worker(job: Mapping[str, Any], folder: pathlib.Path) -> None:
    """Runs FLARE until the job is over."""
    if job["engine"] == "sim":
        from nvflare.recipe import SimEnv

        allow(folder / job["name"])
        recipe(job).execute(SimEnv(clients=job["sites"], workspace_root=str(folder)))
        return
    from nvflare.recipe import ProdEnv

    admin = start_parties(job, folder) if job["engine"] == "poc" else pathlib.Path(job["startup_kit"])
    result = recipe(job).execute(ProdEnv(startup_kit_location=str(admin), username=job.get("user") or admin.name,
                                         login_timeout=LOGIN)).get_result()
    for found in pathlib.Path(result or "/nowhere").rglob("centre/centre.json"):
        out = pathlib.Path(job["out"]) / "centre"
        out.mkdir(parents=True, exist_ok=True)
        for file in found.parent.iterdir():
            (out / file.name).write_bytes(file.read_bytes())


def start_parties(job: Mapping[str, Any], folder: pathlib.Path) -> pathlib.Path:
    """Engine poc: startup kits as for production, and every party as processes of this machine, on loopback. Returns
    the administrator's kit."""
    ports = []
    with contextlib.ExitStack() as open_sockets:
        for _ in range(2):
            s = open_sockets.enter_context(socket.socket())
            s.bind(("127.0.0.1", 0))
            ports.append(s.getsockname()[1])
    user = "admin@affpcl.org"
    parties = [{"name": "localhost", "type": "server", "org": "affpcl", "fed_learn_port": ports[0], "admin_port": ports[1]},
               *({"name": name, "type": "client", "org": "affpcl"} for name in job["sites"]),
               {"name": user, "type": "admin", "org": "affpcl", "role": "project_admin"}]
    builders = [{"path": f"nvflare.lighter.impl.{builder}", **({"args": args} if args else {})} for builder, args in (
        ("workspace.WorkspaceBuilder", {}), ("static_file.StaticFileBuilder", {"config_folder": "config", "scheme": "tcp"}),
        ("cert.CertBuilder", {}), ("signature.SignatureBuilder", {}))]
    project = folder / "project.json"  # JSON is YAML
    project.write_text(json.dumps({"api_version": 3, "name": "parties", "participants": parties, "builders": builders}))
    subprocess.run([sys.executable, "-m", "nvflare.cli", "provision", "-p", str(project), "-w", str(folder)], check=True)
    kits = max((folder / "parties").glob("prod_*"))
    path = {"PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])}
    for name in ["localhost", *job["sites"]]:
        allow(kits / name)
        subprocess.Popen([str(kits / name / "startup" / "sub_start.sh"), "--once"], env={**os.environ, **path},
                         stdin=subprocess.DEVNULL)
    return kits / user


def marked(mark: str) -> Iterator[Any]:
    """The processes of a job."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK) == mark:
                yield process


def end_all(mark: str) -> None:
    """Ends all processes of a job."""
    import psutil

    while processes := list(marked(mark)):
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(processes, timeout=5)


def run(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Runs a job and yields what it says: progress, notes, an error, or what was done."""
    out = pathlib.Path(job["out"])
    out.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex
    folder, events = out / ".flare", out / ".events"
    folder.mkdir(exist_ok=True)
    events.write_text("")
    whole = {**job, "events": str(events) if job["engine"] != "production" else ""}
    process = subprocess.Popen([sys.executable, "-m", "affpcl.flare", "--worker", str(folder)], stdin=subprocess.PIPE,
                               stdout=sys.stderr, env={**os.environ, MARK: mark})
    over = False
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(whole).encode())
        process.stdin.close()
        with open(events, encoding="utf-8") as said:
            while not over:
                ended = process.poll() is not None
                for line in said:
                    what = json.loads(line)
                    over = over or "error" in what
                    yield what
                if ended:
                    break
                time.sleep(LOOK)
        if not over and process.wait() != 0:
            yield {"error": f"NVIDIA FLARE ended with code {process.returncode}"}
        elif not over and job["engine"] == "production":
            yield {"done": list(job["sites"])}
    finally:
        end_all(mark)
        process.wait()
        events.unlink(missing_ok=True)


def main() -> int:
    """Reads a job, one line of JSON, and prints what run() yields."""
    if sys.argv[1:2] == ["--worker"]:
        from affpcl import flare  # FLARE looks for the classes there, not in __main__

        flare.worker(json.loads(sys.stdin.read()), pathlib.Path(sys.argv[2]))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job = json.loads(sys.stdin.readline())
    failed = False
    for said in run(job):
        failed = failed or "error" in said
        print(json.dumps(said), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
