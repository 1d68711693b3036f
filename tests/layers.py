#!/usr/bin/env python3
"""Checks the shape of the source tree: who includes whom, that the library is silent, that a class has one definition.

usage: layers.py [ROOT]        one line per violation, exit 1 if there is any
       layers.py --self-test   plants one violation of each kind in a temporary tree and sees that it is reported

1. affpcl/ is a stack of layers; a file includes only its own layer and those before it. Tests may include any layer.
2. Nothing under affpcl/ includes cli/, examples/, bench/ or python/; only tests include tests/.
3. Public headers (affpcl/**/*.h except *-inl.h and *_test.h) include the standard library and affpcl headers, no more.
4. Library code neither prints nor ends the process.
5. No two files define a class of the same name outside anonymous namespaces. Where both were linked into one program,
   the linker would keep one of two destructors, say, and use it for both.
6. HACKING.md and docs/decisions/001-layers.md name the layers in this order.
7. Tests wait for something to happen, not for time to pass: they sleep in WAITS alone.
8. A library that is slow to compile is included in its one place, here and in cli/, bench/ and the like.
"""
import pathlib
import re
import sys
import tempfile

LAYERS = "base math random data problem density method runtime federation table mixed stream affinity fit study output".split()
OUTSIDE = ("cli", "examples", "bench", "python")
FOLDERS = ("affpcl", *OUTSIDE, "tests", "tools")
BESIDE = (*OUTSIDE, "tests", "tools")  # checked for ONLY_IN alone

# Headers that begin so are included in these files only.
ONLY_IN = {
    "nlohmann/": ("affpcl/base/json.cc",),
    "CLI/": ("cli/options.cc", "tools/features/main.cc"),
    "Eigen/": (*(f"affpcl/math/{name}" for name in ("dense-inl.h", "dense_eigen.cc", "dense_solve.cc", "dense_symmetric.cc")),
               "bench/eigen_round.cc", "bench/blocks_bench.cc"),  # these measure it
    "sodium": ("affpcl/federation/masks.cc", "affpcl/random/secret_bits.cc"),
}

STANDARD = set("""
    algorithm any array atomic barrier bit bitset charconv chrono codecvt compare complex concepts condition_variable
    coroutine deque exception execution filesystem format forward_list fstream functional future initializer_list
    iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new numbers
    numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
    source_location span sstream stack stdexcept stop_token streambuf string string_view strstream syncstream
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
    vector version cassert cctype cerrno cfenv cfloat cinttypes climits clocale cmath csetjmp csignal cstdarg cstddef
    cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype""".split())

# What a library must not do. Members of that name (token.exit()) and other namespaces' are somebody else's.
LOUD = [(re.compile(pattern), what) for pattern, what in (
    (r"\bstd::w?(?:cout|cerr|clog)\b", "writes to a standard stream"),
    (r"\b(?:stdout|stderr)\b", "writes to a standard stream"),
    (r"(?<![\w.>:])(?:std::)?(?:printf|vprintf|puts|putchar|perror)\s*\(", "writes to a standard stream"),
    (r"\bfmt::print\s*\(\s*(?:FMT_\w+\s*\(\s*)?\"", "writes to a standard stream"),
    (r"#\s*include\s*<iostream>", "includes <iostream>"),
    (r"(?<![\w.>:])(?:std::|::)?(?:abort|exit|_exit|_Exit|quick_exit|terminate)\s*\(", "ends the process"),
)]

# Where tests poll; and threads of a team sleep on purpose, whoever is first.
WAITS = ("tests/cli/_wait.py", "python/tests/conftest.py", "affpcl/runtime/team_test.cc")
SLEEP = re.compile(r"(?<![\w\"'])(?:time\.sleep|usleep|nanosleep|sleep|sleep_for|sleep_until)\s*\(|\bfrom time import .*\bsleep\b")

# The library names options by key; the command line spells them (affpcl/base/error.h).
OPTION = re.compile(r"""(?<![-\w])--[a-z]""")

TOKEN = re.compile(r"""
    //[^\n]* | /\*.*?\*/                                  # comments
  | R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"                        # raw strings
  | "(?:\\.|[^"\\\n])*" | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'  # strings, characters (not digit separators)
""", re.S | re.X)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>|"[^"\n]+")', re.M)

# What opens and closes scopes, and the definitions of classes; comments and strings must be blank.
SCOPE = re.compile(r"""
    (?P<namespace>\bnamespace\b[^;{}()=]*)\{ | (?P<open>\{) | (?P<close>\})
  | \b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?(?P<name>[A-Za-z_]\w*)
    (?=\s*(?:final\b\s*)?(?::(?!:)[^;{}()]*)?\{)
""", re.X)


def blank(text, strings):
    """text without comments, and without the inside of strings if asked; line numbers stay."""
    def gap(match):
        token = match.group()
        lines = "\n" * token.count("\n")
        if token.startswith(("//", "/*")):
            return " " + lines
        return '""' + lines if strings else token
    return TOKEN.sub(gap, text)


def options_named(text):
    """(option, line) of every option of the command line that a string of text names."""
    for token in TOKEN.finditer(text):
        if not token.group().startswith(("//", "/*")):
            for match in OPTION.finditer(token.group()):
                yield match.group(), line_of(text, token.start() + match.start())


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def layer_of(path):
    """The layer of affpcl/math/blocks.h is 'math'; files directly in affpcl/ have none."""
    parts = path.split("/")
    return parts[1] if parts[0] == "affpcl" and len(parts) > 2 else None


def check_place(path, name):
    """Why name has its place elsewhere than in path, or None."""
    for start, places in ONLY_IN.items():
        if name.startswith(start) and path not in places:
            return f"includes {name}, which belongs in {' and '.join(places)}"
    return None


def check_include(path, name, quoted):
    """Why path may not include name, or None."""
    if why := check_place(path, name):
        return why
    test = re.search(r"_test\.(cc|h)$", path)
    public = path.endswith(".h") and not test and not path.endswith("-inl.h")
    top = name.split("/")[0]
    own = layer_of(path)
    if "/" in name and top in OUTSIDE:
        return f"the library includes {top}/"
    if "/" in name and top == "tests" and not test:
        return "only tests include tests/"
    if top == "affpcl" and "/" in name:
        theirs = layer_of(name)
        if theirs is None and name != "affpcl/version.h" and own is not None:
            return f"a layer includes {name}, which stands above all layers"
        if theirs is not None and theirs not in LAYERS:
            return f"includes {name}, whose folder is no layer"
        if not test and own in LAYERS and theirs is not None and LAYERS.index(theirs) > LAYERS.index(own):
            return f"{own} includes {name}, but {theirs} is a later layer"
        if not test and re.search(r"_test\.h$", name):
            return f"includes the test header {name}"
        if public and name.endswith("-inl.h"):
            return f"a public header includes {name}, which is not installed"
        return None
    if public and (quoted or name not in STANDARD):
        return f"a public header includes {name}, neither standard nor affpcl/..."
    return None


def classes(text):
    """(qualified name, line) of every class that text defines at namespace scope, outside anonymous namespaces."""
    scopes = []  # a namespace's name ('' of an anonymous one); None: a class or a function
    for match in SCOPE.finditer(text):
        if match["namespace"] is not None:
            scopes.append(match["namespace"].split()[-1] if match["namespace"].split()[1:] else "")
        elif match["open"]:
            scopes.append(None)
        elif match["close"]:
            del scopes[-1:]
        elif all(scopes):
            yield "::".join([*scopes, match["name"]]), line_of(text, match.start("name"))


def check_classes(root):
    """Classes that are defined twice, as 'path:line: why'."""
    first, found = {}, []
    for file in sorted(f for folder in FOLDERS for f in (root / folder).rglob("*") if f.suffix in (".h", ".cc")):
        path = file.relative_to(root).as_posix()
        for name, line in classes(blank(file.read_text(encoding="utf-8"), strings=True)):
            if first.setdefault(name, path) != path:
                found.append(f"{path}:{line}: {name} is defined in {first[name]} too")
    return found


def check_public_headers(root):
    """Headers that are installed but include ones that are not, or that are not there, as 'path:line: why'."""
    listed = root / "cmake/public_headers.txt"
    if not listed.exists():
        return []
    public = {line: number for number, line in enumerate(listed.read_text(encoding="utf-8").splitlines(), 1)
              if line.startswith("affpcl/")}
    found = []
    for path, number in public.items():
        file = root / path
        if not file.exists():
            found.append(f"cmake/public_headers.txt:{number}: {path} is not there")
            continue
        text = blank(file.read_text(encoding="utf-8"), strings=False)
        for match in INCLUDE.finditer(text):
            name = match.group(1)[1:-1]
            if name.startswith("affpcl/") and name not in public and name != "affpcl/version.h":
                found.append(f"{path}:{line_of(text, match.start(1))}: is installed and includes {name}, which is not")
    return found


def check_documents(root):
    """Documents that name other layers, or in another order, as 'path:line: why'."""
    def text(path):
        file = root / path
        return file.read_text(encoding="utf-8") if file.exists() else ""
    map_of_code, decision = text("HACKING.md"), text("docs/decisions/001-layers.md")
    wrong = []
    if map_of_code and re.findall(r"^\| `affpcl/(\w+)/`", map_of_code, re.M) != LAYERS:
        wrong.append("HACKING.md")
    if decision and f"\n{', '.join(LAYERS)}.\n" not in decision:
        wrong.append("docs/decisions/001-layers.md")
    return [f"{path}:1: the layers are, in this order: {', '.join(LAYERS)}" for path in wrong]


def check_sleeps(root):
    """Tests that sleep."""
    found = []
    tests = [*(root / "affpcl").rglob("*_test.*"), *(root / "tests").rglob("*_test.cc"), *(root / "tests").glob("*.h"),
             *(root / "tests/cli").glob("*.py"), *(root / "python/tests").glob("*.py")]
    for file in sorted(tests):
        path = file.relative_to(root).as_posix()
        if path in WAITS:
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if SLEEP.search(line):
                found.append(f"{path}:{number}: a test waits for something to happen (_wait.py), not for time to pass")
    return found


def check(root):
    """All violations below root, as 'path:line: why'."""
    found = []
    root = pathlib.Path(root)
    files = sorted(f for f in (root / "affpcl").rglob("*") if f.suffix in (".h", ".cc"))
    for file in files:
        path = file.relative_to(root).as_posix()
        layer = layer_of(path)
        if layer is not None and layer not in LAYERS:
            found.append(f"{path}:1: folder {layer} is no layer (they are: {', '.join(LAYERS)})")
        source = file.read_text(encoding="utf-8")
        text = blank(source, strings=False)
        for match in INCLUDE.finditer(text):
            name, quoted = match.group(1)[1:-1], match.group(1)[0] == '"'
            why = check_include(path, name, quoted)
            if why:
                found.append(f"{path}:{line_of(text, match.start(1))}: {why}")
        if not re.search(r"_(test|bench)\.(cc|h)$", path):
            found += [f"{path}:{line}: names {option}..., an option of the command line; write its key: `key`"
                      for option, line in options_named(source)]
            text = blank(source, strings=True)
            for pattern, what in LOUD:
                for match in pattern.finditer(text):
                    token = match.group().strip()
                    found.append(f"{path}:{line_of(text, match.start())}: library code {what}: {token}")
    for file in sorted(f for top in BESIDE for f in (root / top).rglob("*") if f.suffix in (".h", ".cc")):
        path = file.relative_to(root).as_posix()
        text = blank(file.read_text(encoding="utf-8"), strings=False)
        for match in INCLUDE.finditer(text):
            if why := check_place(path, match.group(1)[1:-1]):
                found.append(f"{path}:{line_of(text, match.start(1))}: {why}")
    return found + check_sleeps(root) + check_public_headers(root) + check_classes(root) + check_documents(root), len(files)


def self_test():
    """Each file holds one violation, except those expected to be fine."""
    fine = {
        "affpcl/base/error.h": "#include <string>\n#include <affpcl/version.h>\n",
        "tests/cli/_wait.py": "time.sleep(.002)\n",
        "tests/cli/test_wakes.py": "shop.write('sleep.csv', sleep_table())  # does not sleep\n",
        "affpcl/math/a.h": '#pragma once\n#include "affpcl/base/error.h"\n// #include "cli/x.h"\n/* std::cout */\n',
        "affpcl/math/a.cc": '#include "affpcl/math/a.h"\n#include <hwy/highway.h>\n#include "hwy/highway.h"\n'
                            'int f(char* p) { return std::snprintf(p, 3, "std::cerr exit(1)"); }\n'
                            "int big = 1'000'000; // printf(\nvoid g(T t) { t.exit(); on_exit(); }\n",
        "affpcl/math/a-inl.h": "#include <hwy/highway.h>\n",
        "affpcl/math/a_test.cc": '#include <gtest/gtest.h>\n#include "tests/source_dir.h"\n#include <iostream>\n'
                                 "void f() { std::cout << 1; }\n",
        "affpcl/math/a_bench.cc": "#include <benchmark/benchmark.h>\n",
        "affpcl/math/key.cc": "// --force\nauto s = f(\"`force`, a-- and x--y, 1 -- 2\", --i);\n",
        "affpcl/base/json.cc": '#include "affpcl/base/json.h"\n#include <nlohmann/json.hpp>\n',
        "cli/c.cc": '#include "affpcl/base/json.h"\n// #include <nlohmann/json.hpp>\n#include <fmt/format.h>\n',
        "cli/options.cc": '#include "cli/options.h"\n#include <CLI/CLI.hpp>\n',
        "affpcl/study/s.cc": '#include "affpcl/fit/f.h"\n#include "affpcl/base/error.h"\n',
        "affpcl/affpcl.h": '#include "affpcl/study/s.h"\n',
        "affpcl/math/once.h": "namespace affpcl {\nclass Once;\nstruct Once { void f() { struct In {}; } };\n"
                              "template <class T> struct Shape final : Once {};\n}\n",
        "affpcl/math/hidden.cc": "namespace affpcl {\nnamespace {\nstruct Once { int x; };\n}\n"
                                 "struct Other { struct Once {}; struct In {}; };\nOnce* f(struct Once& once) { return {}; }\n}\n",
        "affpcl/math/elsewhere.cc": 'namespace affpcl::cli { struct Once {}; } // struct Other {}\nauto s = "struct Other {";\n',
    }
    bad = {
        "affpcl/math/up.h": '#include "affpcl/random/streams.h"\n',
        "affpcl/base/up.cc": "int x;\n#  include <affpcl/study/spec.h>\n",
        "affpcl/math/umbrella.cc": '#include "affpcl/affpcl.h"\n',
        "affpcl/study/cli.cc": '#include "cli/main.h"\n',
        "affpcl/study/helper.cc": '#include "tests/source_dir.h"\n',
        "affpcl/study/test_header.cc": '#include "affpcl/math/a_test.h"\n',
        "affpcl/misc/stray.cc": "int x;\n",
        "affpcl/math/nap_test.cc": "void f() { std::this_thread::sleep_for(1ms); }\n",
        "tests/cli/test_nap.py": "time.sleep(1)\n",
        "python/tests/test_nap.py": "from time import monotonic, sleep\n",
        "affpcl/base/stray.cc": '#include "affpcl/misc/x.h"\n',
        "affpcl/math/inl.h": '#include "affpcl/math/a-inl.h"\n',
        "affpcl/math/relative.h": '#include "a.h"\n',
        **{f"affpcl/math/third{i}.h": f"#include <{name}>\n" for i, name in enumerate(
            ("Eigen/Dense", "hwy/highway.h", "fmt/format.h", "toml++/toml.h", "nlohmann/json.hpp", "CLI/CLI.hpp",
             "Random123/philox.h", "boost/math/distributions/students_t.hpp", "gtest/gtest.h"))},
        **{f"affpcl/math/loud{i}.cc": f"int x;\n{line}\n" for i, line in enumerate(
            ("void f() { std::cout << 1; }", "void f() { std::cerr << 1; }", 'void f() { printf("x"); }',
             'void f() { std::printf("x"); }', 'void f() { std::fprintf(stderr, "x"); }', 'void f() { fmt::print("x"); }',
             "void f() { std::abort(); }", "void f() { exit(1); }", "void f() { std::exit (1); }",
             "void f() { std::terminate(); }", "#include <iostream>"))},
        "affpcl/math/twice.cc": "namespace affpcl {\nnamespace { int x; }\nclass Once final : public std::vector<int> {};\n}\n",
        "tests/twice_test.cc": "namespace affpcl { template <class T>\nstruct Shape {}; }\n",
        "python/core/twice.cc": "namespace affpcl { enum class Other : int { kA }; }\n",
        "HACKING.md": "".join(f"| `affpcl/{name}/` | what |\n" for name in sorted(LAYERS)),
        "docs/decisions/001-layers.md": "\nbase, math.\n",
        **{path: "int x;\n#include <nlohmann/json.hpp>\n" for path in (
            "affpcl/base/other.cc", "affpcl/base/json_test.cc", "affpcl/study/json.cc", "affpcl/output/fit_json-inl.h", "cli/x.cc",
            "cli/x.h", "bench/x.cc", "tests/x_test.cc", "tests/theory/x.h", "examples/x.cc", "python/core/x.cc", "tools/f/x.cc")},
        **{path: "#include <CLI/CLI.hpp>\n" for path in ("cli/verbs.h", "cli/main.cc", "cli/options.h", "affpcl/study/cli.h")},
        "affpcl/study/fwd.cc": "#include <nlohmann/json_fwd.hpp>\n",
        "affpcl/fit/solve.cc": "#include <Eigen/Dense>\n",
        "affpcl/federation/masks_test.cc": "#include <sodium.h>\n",
        "cmake/public_headers.txt": "# those installed\naffpcl/base/error.h\naffpcl/base/gone.h\naffpcl/random/public.h\n",
        "affpcl/random/public.h": '#include "affpcl/base/error.h"\n#include "affpcl/math/a.h"\n',
        "affpcl/math/options.cc": 'auto s = f("a-- b, --force an option");\n',
        "affpcl/math/loud.h": "inline void f() { std::puts(\"x\"); }\n",
    }
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**fine, **bad}.items():
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        found, _ = check(root)
    reported = [line.split(":")[0] for line in found]
    wrong = [f"not reported: {p}" for p in bad if p not in reported]
    wrong += [f"reported, but fine: {line}" for line in found if line.split(":")[0] in fine]
    wrong += [f"reported more than once: {p}" for p in sorted(set(reported)) if reported.count(p) > 1]
    return wrong, len(bad)


def main(args):
    if args == ["--self-test"]:
        wrong, count = self_test()
        print("\n".join(wrong) or f"layers: all {count} planted violations are reported, and nothing else")
        return bool(wrong)
    if len(args) > 1 or (args and args[0].startswith("-")):
        print(__doc__)
        return 2
    root = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parent.parent
    found, count = check(root)
    if not count:
        found = [f"no sources below {root}/affpcl"]
    print("\n".join(found) or f"layers: {count} files are in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
