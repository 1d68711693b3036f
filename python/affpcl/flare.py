"""A federation over NVIDIA FLARE 2.9: `affpcl federate JOB.toml` with engine = "sim", "poc" or "production" runs this.

FLARE carries the messages between the centre, which is its server, and the sites, which are its clients. At each site a
process of the program reads the rows, which never leave it (see affpcl.federation). What is sent is masked by the sites
themselves, below FLARE's own encryption: FLARE's server cannot read the part of a single site.

    from affpcl.flare import recipe
    recipe(job).execute(ProdEnv(startup_kit_location="admin@example.org"))

`job` is a dictionary: name, sites, min_sites, secure, and fit, with the options of the task by name; or task "run" and
spec, the text of a study.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import re
import shutil
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
       "weights", "out", "tasks", "unmasked", "level_rows", "accepts")
# Options that a site takes from the job: none that names a file, or what the site shows of itself.
ASKED = ("target", "agent", "features", "exclude", "missing", "categorical", "numeric", "levels", "level_rows", "sep", "decimal",
         "encoding", "na", "skip", "comment", "task", "family", "row_weight", "trials", "offset", "offset_scale", "common",
         "within", "crossed", "covariance", "estimate", "approximation", "plain", "score", "repeats", "level", "folds", "time",
         "seed", "privacy", "bounds")
LEVEL_ROWS = 10  # a site names no level with fewer of its rows
PULSE = 20.0  # seconds until a site that has not answered is asked whether it is alive
PATIENCE = 60.0  # seconds that the centre waits for a site that may come back
LOGIN = 60.0  # seconds for logging in to FLARE's server
ATTEMPTS = 3  # of a job that FLARE has ended
STATUS = "status.json"  # how the centre ended
LOOK = 0.1  # seconds between looks at what was written


class SiteRefused(Exception):
    """The site cannot go on, or does not want to; this ends the job."""


def job_key(job: Mapping[str, Any]) -> str:
    """A hash of what all parties agree to. Every site makes it from what it was asked, so that a site that was asked
    something else than the others cannot read or spoil their sums."""
    agreed = {name: job.get(name) for name in ("name", "task", "sites", "min_sites", "secure", "fit", "spec")}
    return hashlib.sha256(json.dumps(agreed, sort_keys=True).encode()).hexdigest()[:32]


def on_one_machine(job: Mapping[str, Any]) -> bool:
    """Whether this machine runs all parties. The job alone is not trusted with that: it comes from the server."""
    return job.get("engine") in ("sim", "poc") and MARK in os.environ


def check_asked(job: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """SiteRefused where the job asks for more than a site gives."""
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]{0,59}", str(job["name"])):
        raise SiteRefused(f"the job's name '{job['name']}' is not of letters, digits, - and _")
    for option in job["fit"]:
        if option not in ASKED:
            raise SiteRefused(f"the job has the option '{option}', which a site does not take from others")
    if "accepts" in settings:
        check_accepted(options_of(job), settings["accepts"])
    fewest = settings.get("level_rows", LEVEL_ROWS)
    if job["fit"].get("level_rows", LEVEL_ROWS) < fewest:
        raise SiteRefused(f"the job has level_rows = {job['fit']['level_rows']}, and this site names no level with fewer than {fewest} rows")


def options_of(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a site is asked to do: the options of the fit, or the text of the study."""
    return {"spec": job["spec"]} if job["task"] == "run" else job["fit"]


def check_accepted(asked: Mapping[str, Any], accepts: Mapping[str, Any]) -> None:
    """SiteRefused where the job's options are not those that a site has written down: each with its value, or a list of
    values of which it is one."""
    for option in sorted(asked.keys() - accepts.keys()):
        raise SiteRefused(f"the job has the option '{option}', which is not among those that this site accepts")
    for option, value in accepts.items():
        allowed = value if isinstance(value, list) and asked.get(option) != value else [value]
        if option not in asked:
            raise SiteRefused(f"the job lacks the option '{option}', with which alone this site accepts it")
        if asked[option] not in allowed:
            raise SiteRefused(f"the job has {option} = {asked[option]!r}, and this site accepts {' or '.join(map(repr, allowed))}")


def own_settings(name: str, job: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """What the site itself says: from its own file, or from the job's where one machine runs all sites."""
    if on_one_machine(job):
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
    check_asked(job, settings)
    base = path.parent
    for key in {"data", "with", "weights"} & settings.keys():
        files = settings[key]
        settings[key] = [str(base / f) for f in ([files] if isinstance(files, str) else files)]
    return settings


def only_server() -> None:
    """Other sites can call what a site publishes, too."""
    if collab.caller != "server":
        raise SiteRefused(f"the site answers the server only, not '{collab.caller}'")


class Site:
    """FLARE's client: it passes the centre's messages to the site's process, and the answers back."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._lock = threading.Lock()
        self._process: FederationSite | None = None
        self._name = ""
        self._message = self._answer = b""  # the last ones

    @collab.publish
    def alive(self) -> bool:
        """Answers also while the site's process works."""
        return True

    @collab.publish
    def answer(self, message: bytes) -> bytes:
        """The answer to the centre's message."""
        only_server()
        with self._lock:
            if message == self._message:  # the centre asks again
                return self._answer
            process = self._process or self._start()
            try:
                self._answer, self._message = process.reply(message), message
                return self._answer
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
        only_server()
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
        if on_one_machine(job):
            out = pathlib.Path(job["out"]) / name
        else:
            here = pathlib.Path(settings.pop("out", None) or pathlib.Path(collab.workspace.get_root_dir()) / "affpcl")
            out = here / f"{job['name']}-{collab.fl_ctx.get_job_id()[:8]}"
            out.parent.mkdir(parents=True, exist_ok=True)
        for name_of_own in ("tasks", "unmasked", "level_rows", "accepts"):
            settings.pop(name_of_own, None)
        options = {**options_of(job), **settings, "report": bool(job.get("report")), "secure": job["secure"]}
        self._process = FederationSite(name, job["task"], options, str(out), job=job_key(job))
        return self._process

    def _refusal(self, sentence: str) -> SiteRefused:
        """What the site says may name values of its rows: it leaves the site only where one machine runs all."""
        logging.getLogger("affpcl").error("%s: %s", self._name or collab.site_name, sentence)
        if on_one_machine(json.loads(self.job)):
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
        if on_one_machine(job):
            out, journal, status = pathlib.Path(job["out"]) / "centre", job["journal"], pathlib.Path(job["status"])
        else:
            out = pathlib.Path(collab.workspace.get_run_dir(collab.fl_ctx.get_job_id())) / "centre"
            kept = pathlib.Path(collab.workspace.get_root_dir()) / "affpcl"
            kept.mkdir(parents=True, exist_ok=True)
            journal, status = str(kept / f"{job_key(job)}.journal"), out / STATUS
        start = time.monotonic()
        try:
            centre = FederationCentre(job["sites"], {**job, "key": job_key(job)}, journal)
            shown, there = -1.0, centre.sites
            while centre.state == "running":
                self._round(centre, job["timeout"])
                if centre.sites != there:
                    there = centre.sites
                    log.warning(centre.status)
                    say(job, note=centre.status)
                if centre.state == "waiting":
                    log.warning(centre.status)
                    say(job, note=centre.status)
                    self._wait(centre)
                if centre.progress >= shown + 0.01:
                    shown = centre.progress
                    log.info("%3.0f %%, %s", 100 * shown, centre.status)
                    say(job, progress=shown)
            if centre.state == "failed":
                raise SiteRefused(centre.status)
            if centre.state != "done":
                raise RuntimeError(centre.status)
            centre.save(out)
            result = {"done": centre.sites, "rounds": centre.rounds, "seconds": time.monotonic() - start}
        except (SiteRefused, ValueError) as error:  # the job would not go on either
            result = {"error": str(error), "input": True}
        except Exception as error:
            result = {"lost": str(error)}
        log.log(logging.INFO if "done" in result else logging.ERROR, "%s", json.dumps(result))
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(json.dumps(result), encoding="utf-8")
        if "lost" not in result:
            pathlib.Path(journal).unlink(missing_ok=True)
        if "done" not in result:
            raise RuntimeError(result.get("error") or result.get("lost"))

    def _round(self, centre: FederationCentre, timeout: float) -> None:
        """The centre's message to all sites whose answer is missing, and their answers."""
        message, names = centre.message(), centre.expected()
        connected = {client.name for client in collab.clients}
        for name in names:
            if name not in connected:
                centre.lost(name)
        if centre.message() != message or not set(names) <= connected:
            return
        answers, errors = self._ask(names, message, timeout)
        refused: dict[str, list[str]] = {}
        for name, error in errors.items():
            if error.cause_type == "SiteRefused":
                refused.setdefault(sentence(error), []).append(name)
        if refused:  # of sites that disagree, the few that are different say it best
            why, who = min(refused.items(), key=lambda item: len(item[1]))
            raise SiteRefused(f"site{'s' * (len(who) > 1)} {', '.join(map(repr, sorted(who)))}: {why}")
        for name, answer in answers.items():
            centre.take(name, answer)
        for name in errors:
            centre.lost(name)

    def _ask(self, names: list[str], message: bytes, timeout: float) -> tuple[dict[str, bytes], dict[str, Any]]:
        """Answers and errors by site. A site may work on its answer for long, so one that is late is asked whether it is
        alive, and then for the same answer again."""
        answers: dict[str, bytes] = {}
        errors: dict[str, Any] = {}
        until, pulse = time.monotonic() + timeout, PULSE
        while names:
            replies = collab.get_clients(names)(timeout=pulse).answer(message)
            answers.update(replies)
            late = {name: error for name, error in replies.failures.items() if error.cause_type == "TimeoutError"}
            errors.update((name, error) for name, error in replies.failures.items() if name not in late)
            names = []
            if late and time.monotonic() < until:
                names = [name for name, _ in collab.get_clients(list(late))(timeout=PULSE / 2).alive()]
            errors.update((name, error) for name, error in late.items() if name not in names)
            pulse *= 2
        return answers, errors

    def _wait(self, centre: FederationCentre) -> None:
        """Asks the lost sites for a while whether they are back."""
        until = time.monotonic() + PATIENCE
        missing = centre.lost_sites
        while missing and not collab.is_aborted:
            connected = [client.name for client in collab.clients if client.name in missing]
            replies = collab.get_clients(connected)(timeout=5.0).ready() if connected else []
            for name, _ in replies:
                missing.remove(name)
                centre.back(name)
            if not connected:  # FLARE takes no more sites into a job that runs
                raise RuntimeError(f"{centre.status}, which is not connected")
            if missing and time.monotonic() > until:
                raise RuntimeError(f"{centre.status}, but it does not come back")


def sentence(error: Any) -> str:
    """What a site said, without the name of the exception that carried it."""
    text = str(error.cause)
    return text.removeprefix("SiteRefused:").strip()


def recipe(job: Mapping[str, Any], centre: type[Centre] = Centre, again: bool = False) -> Any:
    """The job as FLARE has it: `recipe(job).execute(env)` runs it in any of its environments.

    No code travels with it: every party runs the affpcl that it has installed."""
    from nvflare.collab import CollabRecipe

    class Installed(CollabRecipe):  # type: ignore[misc]
        @staticmethod
        def _user_source_entries(objs: Any) -> list[Any]:
            return []

    # FLARE starts the job once all sites are there; where it is submitted again, once enough are.
    complete = {"task": "fit", "min_sites": 0, "secure": True, "timeout": 600, "fit": {}, "spec": "", "engine": "production", **job}
    if complete["engine"] == "production":  # paths of this machine say nothing to the parties
        for name in ("events", "status", "out", "journal", "startup_kit", "user", "site"):
            complete.pop(name, None)
    text = json.dumps(complete)
    made = Installed(job_name=complete["name"], server=centre(text), client=Site(text),
                     min_clients=(again and complete["min_sites"]) or len(complete["sites"]))
    made._job.set_app_packages(["affpcl", centre.__module__.partition(".")[0]])
    return made


def allow(kit: str | os.PathLike[str]) -> None:
    """Lets FLARE of this startup kit run the classes of affpcl: adds them to its local/resources.json."""
    local = pathlib.Path(kit) / "local"
    if (pathlib.Path(kit) / "startup").exists() and not local.exists():
        raise ValueError(f"{kit} is no startup kit of a server or site: it has no folder local")
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


def say(job: Mapping[str, Any], **what: Any) -> None:
    """Tells whoever started the job, where that is on this machine."""
    if job.get("events"):
        with open(job["events"], "a", encoding="utf-8") as file:
            file.write(json.dumps(what) + "\n")


def worker(job: Mapping[str, Any], folder: pathlib.Path) -> None:
    """Runs FLARE until the job is over. FLARE ends a job where a party's process dies; what was summed is in the
    centre's journal, and the job is submitted again: FLARE starts it once enough sites are there."""
    admin = start_parties(job, folder) if job["engine"] == "poc" else pathlib.Path(job["startup_kit"])
    for attempt in range(ATTEMPTS):
        result = {"lost": "NVIDIA FLARE ended the job"}
        for path in result_files(job, folder, admin, attempt > 0):
            if path.name == STATUS:
                result = json.loads(path.read_text(encoding="utf-8"))
                path.unlink()
            elif job["engine"] == "production":
                out = pathlib.Path(job["out"]) / "centre"
                out.mkdir(parents=True, exist_ok=True)
                (out / path.name).write_bytes(path.read_bytes())
        if "lost" not in result:
            return say(job, **result)
        if job["engine"] == "sim":
            break
        if attempt + 1 < ATTEMPTS:
            say(job, note=f"{result['lost']}; submitted again: it goes on from the centre's journal once all sites are there")
            if job["engine"] == "poc" and not server_lives():
                end_all(os.environ[MARK])
                again = folder / f"again{attempt}"
                again.mkdir()
                admin = start_parties(job, again)
    say(job, error=f"{result['lost']}; the same job goes on from the centre's journal")


def result_files(job: Mapping[str, Any], folder: pathlib.Path, admin: pathlib.Path, again: bool) -> list[pathlib.Path]:
    """Runs the job once; what the centre wrote."""
    status = [folder / STATUS]
    if job["engine"] == "sim":
        from nvflare.recipe import SimEnv

        allow(folder / job["name"])
        with contextlib.suppress(RuntimeError):  # its status says more
            recipe(job).execute(SimEnv(clients=job["sites"], workspace_root=str(folder)))
        return [path for path in status if path.exists()]
    from nvflare.recipe import ProdEnv

    env = ProdEnv(startup_kit_location=str(admin), username=job.get("user") or admin.name, login_timeout=LOGIN)
    result = recipe(job, again=again).execute(env).get_result()
    if job["engine"] == "poc":
        return [path for path in status if path.exists()]
    return [path for path in pathlib.Path(result or "/nowhere").rglob("centre/*") if path.is_file()]


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


def server_lives() -> bool:
    """Whether FLARE's server of engine poc is there."""
    return any("nvflare.private.fed.app.server.server_train" in process.cmdline() for process in marked(os.environ[MARK]))


def end_all(mark: str) -> None:
    """Ends all processes of a job."""
    import psutil

    patience = 1.0  # until what was asked to end is killed
    while processes := list(marked(mark)):
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.terminate() if patience else process.kill()
        psutil.wait_procs(processes, timeout=patience or 5.0)
        patience = 0.0


def run(job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Runs a job and yields what it says: progress, notes, an error, or what was done."""
    out = pathlib.Path(job["out"])
    out.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex
    folder, events = out / ".flare", out / ".flare" / "events"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    events.write_text("")
    whole = {**job, "events": str(events), "status": str(folder / STATUS)}
    process = subprocess.Popen([sys.executable, "-m", "affpcl.flare", "--worker", str(folder)], stdin=subprocess.PIPE,
                               stdout=sys.stderr, env={**os.environ, MARK: mark})
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(whole).encode())
        process.stdin.close()
        over = False
        with open(events, encoding="utf-8") as said:
            while not over:
                ended = process.poll() is not None
                for line in said:
                    what = json.loads(line)
                    over = over or "error" in what or "done" in what
                    yield what
                if ended and not over:
                    yield {"error": f"NVIDIA FLARE ended with code {process.returncode}"}
                    over = True
                time.sleep(LOOK)
    finally:
        end_all(mark)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Reads a job, one line of JSON, and prints what run() yields; or adds affpcl to a startup kit."""
    if sys.argv[1:2] == ["--worker"]:
        from affpcl import flare  # FLARE looks for the classes there, not in __main__

        flare.worker(json.loads(sys.stdin.read()), pathlib.Path(sys.argv[2]))
        return 0
    if sys.argv[1:2] == ["--allow"] and len(sys.argv) == 3:
        allow(sys.argv[2])
        return 0
    if len(sys.argv) > 1 or sys.stdin.isatty():
        print("affpcl federate JOB.toml runs a job; python -m affpcl.flare --allow KIT lets a party's FLARE run affpcl",
              file=sys.stderr)
        return 2

    def stop(*_: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):  # the end is not interrupted
            signal.signal(number, signal.SIG_IGN)
        sys.exit(143)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    job = json.loads(sys.stdin.readline())
    failed = False
    for said in run(job):
        failed = failed or "error" in said
        print(json.dumps(said), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
