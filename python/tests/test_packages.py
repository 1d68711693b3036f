"""What is handed out: a wheel with the program that needs nothing of this machine, and Debian's package."""
import os
import pathlib
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

import affpcl

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIT = ["fit", ROOT / "examples" / "shops.csv", "--target", "sales", "--agent", "shop"]
# What a manylinux wheel may expect of any machine.
EXPECTED = ("ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libutil.so", "libresolv.so",
            "libgcc_s.so", "libstdc++.so", "libz.so")


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """With the flags of the development build, so that ccache has compiled the library already."""
    pytest.importorskip("auditwheel", reason="no auditwheel: tools/setup wheel")
    out = tmp_path_factory.mktemp("wheel")
    settings = ["cmake.build-type=RelWithDebInfo", "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1",
                "cmake.define.AFFPCL_WERROR=true", f"build-dir={ROOT}/build/wheel-test"]
    call(sys.executable, ROOT / "tools" / "wheel", "--out", out, *(f"--setting={setting}" for setting in settings))
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel, which finds NumPy and scikit-learn where they are here."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    call(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "-q", "--no-index", "--no-deps", wheel)
    site = next((folder / "lib").glob("python*/site-packages"))
    (site / "here.pth").write_text(os.path.dirname(os.path.dirname(sys.modules["numpy"].__file__)) + "\n")
    return folder


def clean():
    return {"PATH": "/nowhere", "HOME": "/nowhere"}


def test_the_wheel_says_what_it_is(wheel):
    assert "manylinux" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
    head = metadata.split("\n\n")[0]
    assert "License-Expression: Apache-2.0" in head and "Provides-Extra: flare" in head and "Classifier: " in head


def test_its_program_runs_and_prints_what_the_built_one_prints(installed, tmp_path):
    program = pathlib.Path(os.environ["AFFPCL_PROGRAM"])
    assert call(installed / "bin" / "affpcl", *FIT, cwd=tmp_path, env=clean()) == call(program, *FIT)


def test_its_program_makes_a_page(installed, tmp_path):
    built = subprocess.run([os.environ["AFFPCL_PROGRAM"], *FIT, "--out", tmp_path / "here", "--report"])
    if built.returncode != 0:
        pytest.skip("built without the page")
    call(installed / "bin" / "affpcl", *FIT, "--out", tmp_path / "model", "--report", env=clean())
    assert (tmp_path / "model" / "report.html").stat().st_size > 100_000


def test_nothing_outside_the_wheel_is_loaded(installed, tmp_path):
    """Beside Python, NumPy and scikit-learn: the libraries that every machine has."""
    here = os.path.dirname(os.path.dirname(sys.modules["numpy"].__file__))
    script = ("import importlib.machinery, importlib.util, re\n"
              f"import glob; path = glob.glob({str(installed)!r} + '/lib/python*/site-packages/affpcl/_core*.so')[0]\n"
              "before = open('/proc/self/maps').read()\n"
              "spec = importlib.util.spec_from_file_location('affpcl._core', path)\n"
              "importlib.util.module_from_spec(spec)\n"
              "print('\\n'.join({l.split()[-1] for l in open('/proc/self/maps') if '.so' in l} - "
              "{l.split()[-1] for l in before.splitlines() if '.so' in l}))")
    loaded = call(installed / "bin" / "python", "-c", script, env=clean(), cwd=tmp_path).split()
    assert any("_core" in name for name in loaded)
    foreign = [name for name in loaded
               if not name.startswith((str(installed), here)) and not os.path.basename(name).startswith(EXPECTED)]
    assert foreign == []
    program = next(installed.glob("lib/python*/site-packages/affpcl.scripts/affpcl"))
    needed = [line.split("=>")[-1].split()[0] for line in call("ldd", program, env={}).splitlines() if "/" in line]
    assert [name for name in needed
            if not name.startswith(str(installed)) and not os.path.basename(name).startswith(EXPECTED)] == []


def test_its_package_gives_the_same_numbers(installed, tmp_path):
    script = ("import affpcl, pathlib; assert pathlib.Path(affpcl.__file__).is_relative_to(%r);"
              "print(affpcl.reproduce('fig-specific', set={'run.replicates': 2}).summary['mse_mean'].tolist())")
    found = call(installed / "bin" / "python", "-c", script % str(installed), env=clean(), cwd=tmp_path)
    assert found.strip() == str(affpcl.reproduce("fig-specific", set={"run.replicates": 2}).summary["mse_mean"].tolist())


@pytest.mark.skipif(not all(map(shutil.which, ["cpack", "dpkg-deb", "dpkg-shlibdeps"])), reason="no Debian tools")
def test_the_package_for_debian(tmp_path):
    """Packed from this build, unpacked into a folder: the program runs there, and its libraries are named."""
    build = pathlib.Path(os.environ["AFFPCL_PROGRAM"]).parent
    call("cpack", "-G", "DEB", "-B", tmp_path / "deb", cwd=build)
    package = next((tmp_path / "deb").glob("affpcl_*.deb"))
    call("dpkg-deb", "-x", package, tmp_path / "root")
    depends = call("dpkg-deb", "-f", package, "Depends")
    assert all(name in depends for name in ["libc6", "libhwy", "libfmt"])
    program = tmp_path / "root" / "usr" / "bin" / "affpcl"
    assert call(program, *FIT, env=clean()) == call(build / "affpcl", *FIT)
    assert list((tmp_path / "root" / "usr").glob("lib/**/affpcl-config.cmake"))
