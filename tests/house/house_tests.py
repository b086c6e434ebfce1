#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house checks can fail: each is shown a small tree with one fault, and must name it.

Usage: house_tests.py TOOLS_FOLDER CC
"""
import contextlib
import os
import subprocess
import sys
import tempfile

TOOLS, CC = sys.argv[1], sys.argv[2:]
sys.path[:0] = [TOOLS, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]

import check_docs  # noqa: E402
import check_format  # noqa: E402
import check_layers  # noqa: E402
import check_purity  # noqa: E402
import check_style  # noqa: E402
import past_faults  # noqa: E402
import tap  # noqa: E402

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"


@contextlib.contextmanager
def tree(files):
    """A folder with these files: path -> text (SPDX line added to C files)."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text if not path.endswith((".c", ".h")) or text.startswith("/*")
                           else SPDX + text)
        yield root


def problems_of(checker, files):
    with tree(files) as root:
        found = checker.check(root)
    return found[0] if isinstance(found, tuple) else found


def expect(checker, files, *words):
    """Exactly one problem, with all these words in it."""
    problems = problems_of(checker, files)
    assert len(problems) == 1, problems
    for word in words:
        assert word in problems[0], (word, problems[0])


def expect_clean(checker, files):
    problems = problems_of(checker, files)
    assert not problems, problems


# Layers.

def table_has_no_circle():
    done = []
    while len(done) < len(check_layers.ROOMS):
        free = [room for room, row in check_layers.ROOMS.items()
                if room not in done and all(other in done + ["build"] for other in row)]
        assert free, set(check_layers.ROOMS) - set(done)
        done += free


def arrows_down_are_fine():
    expect_clean(check_layers, {
        "src/codec/a.c": '#include "base/err.h"\n#include "sched/sched.h"\n#include <stdio.h>\n',
        "src/device/b.c": '#include "abi/nvml.h"\n#include "device/b_impl.h"\n',
        "src/cli/c.c": '#include "takt_build.h"\n',
        "tests/base/d.c": '#include "daemon/any.h"\n',
        "src/codec/meson.build": "x = [base_dep, sched_dep, cjson_dep]\n",
        "twin/e.c": '#include "e.h"\n#include "base/str.h"\n',
    })


def arrow_up_is_named():
    expect(check_layers, {"src/base/a.c": '\n#include "sched/sched.h"\n'},
           "src/base/a.c:3", "base -> sched", "sched/sched.h")


def the_twin_shares_nothing_but_base():
    expect(check_layers, {"twin/a.c": '#include "actuate/journal.h"\n'}, "twin -> actuate")


def pure_room_sees_no_store():
    expect(check_layers, {"src/sched/a.h": '# include "store/store.h"\n'}, "sched -> store")


def abi_needs_nothing():
    expect(check_layers, {"include/abi/a.h": '#include "base/err.h"\n'}, "abi -> base")


def paths_go_from_the_root():
    expect(check_layers, {"src/codec/a.c": '#include "../base/err.h"\n'}, "..")


def room_without_row():
    expect(check_layers, {"src/attic/a.c": ""}, "room 'attic' has no row")


def header_of_no_room():
    expect(check_layers, {"src/base/a.c": '#include "attic/a.h"\n'}, "belongs to no room")


def links_follow_the_table():
    expect(check_layers, {"src/sched/meson.build": "a = 1\nb = [store_dep]  # codec_dep\n"},
           "src/sched/meson.build:2", "sched -> store")


def names_are_unique():
    expect(check_layers, {"src/base/a.c": "", "tests/base/a.c": ""}, "another file has this name")


def licence_comes_first():
    expect(check_layers, {"src/base/a.c": "/* why */\n" + SPDX}, "a.c:1", "Apache-2.0")
    expect(check_layers, {"src/base/a.c": "/* SPDX-License-Identifier: MIT */\n"}, "Apache-2.0")
    expect(check_layers, {"plugins/slurm/a.c": SPDX}, "GPL-2.0-or-later")


def files_stay_short():
    expect(check_layers, {"src/base/a.c": "\n" * 900}, "901 lines")
    expect_clean(check_layers, {"src/base/a.c": "\n" * 899})


def build_folders_are_not_ours():
    expect_clean(check_layers, {"build/a.c": "/**/", "out/meson-private/x": "", "out/b.c": "/**/",
                                "shared/c.c": "/**/"})


# Style.

def body(lines):
    return "int f(void)\n{\n" + "\tx();\n" * lines + "}\n"


def long_function_is_named():
    expect(check_style, {"tests/base/a.c": body(101)}, "a.c:3", "f has 101 lines")
    expect_clean(check_style, {"tests/base/a.c": body(100)})


def median_and_p90_hold():
    expect(check_style, {"src/base/a.c": body(16)}, "half of the functions", "16")
    expect(check_style, {"src/base/a.c": body(5) * 8 + body(46) * 2}, "a tenth", "46")
    expect_clean(check_style, {"src/base/a.c": body(15) * 9 + body(45)})


def banned_call_is_named():
    for name in ("strcpy", "sprintf", "atoi", "qsort", "malloc", "exit", "printf"):
        expect(check_style, {"src/base/a.c": f"int y = {name}(x);\n"}, "a.c:2", name)


def words_are_not_calls():
    expect_clean(check_style, {
        "src/base/a.c": '/* strcpy(a) */\nchar *s = "sprintf(x)";\ntakt_free(x);\nq.free(x);\n'
                        "p->exit(1);\nsnprintf(x);\nint free_slots(void);\n",
        "tests/base/b.c": "free(x);\nprintf(x);\n",
    })


def work_left_for_later():
    expect(check_style, {"src/base/a.c": "\n/* TODO: later */\n"}, "a.c:3", "open an issue")


def line_comments_and_typedefs():
    expect(check_style, {"src/base/a.c": "int x; // why\n"}, "a.c:2", "comments")
    expect(check_style, {"src/base/a.c": "typedef struct x y;\n"}, "a.c:2", "typedef")
    expect_clean(check_style, {"src/base/a.c": 'char *u = "http://x"; /* see https://y */\n'})


def lines_are_not_too_long():
    expect(check_style, {"src/base/a.c": "\t" * 12 + "abcde\n"}, "100 columns")
    expect_clean(check_style, {"src/base/a.c": "\t" * 12 + "abcd\n"})


def crash_points_have_one_place():
    point = 'void g(void)\n{\n\ttakt_crash_point("%s");\n}\n'
    expect(check_style, {"src/base/a.c": point % "base.x", "src/base/b.c": point % "base.x"},
           "base.x", "is also in")
    expect(check_style, {"src/base/a.c": point % "X"}, "not named room.place")
    expect_clean(check_style, {"src/base/a.c": point % "base.x"})


def paces_are_told_on_one_page():
    pace = {"src/base/a.c": "static const struct takt_pace tries = {1, 2};\n"}
    expect(check_style, dict(pace, **{"docs/architecture.md": "`base/b.c`"}), "a.c", "a pace")
    expect_clean(check_style, dict(pace, **{"docs/architecture.md": "| ours | 1 s, 2 s | `base/a.c` |"}))


def odd_layout_is_named():
    style = {".clang-format": "BasedOnStyle: LLVM\n"}
    if check_format.find_formatter():
        expect(check_format, dict(style, **{"src/base/a.c": "int  x;\n"}), "a.c:2", "not laid out")
        expect_clean(check_format, dict(style, **{"src/base/a.c": "int x;\n"}))


# Pages.

def links_lead_somewhere():
    there = {"docs/a.md": "# What it is\n\n<a id=\"old\"></a>text\n", "docs/README.md": "[a](a.md)\n", "src/base/a.c": ""}
    front = "[a](docs/a.md#what-it-is), [b](docs/a.md#old), [c](docs), [d](https://x/y#z), [e](docs/README.md)\n"
    expect_clean(check_docs, dict(there, **{"README.md": front}))
    expect(check_docs, dict(there, **{"README.md": front + "[a](docs/b.md)\n"}), "README.md:2", "docs/b.md")
    expect(check_docs, dict(there, **{"README.md": front + "[a](docs/a.md#it)\n"}), "README.md:2", "#it")


def files_of_pages_are_there():
    there = {"src/base/a_b.c": "", "src/base/a_b.h": "", "tests/base/data.tsv": ""}
    expect_clean(check_docs, dict(there, **{"a.md": "`a_b.c`, `base/a_b.[ch]`, src/base/a_{b}.c, `a_*.h`,\n"
                                            "    src/base/a_b DIR     # a program\n`tests/ROOM/test_X.c`\n"}))
    expect(check_docs, dict(there, **{"a.md": "`b.c` is gone\n"}), "a.md:1", "'b.c'")
    expect(check_docs, dict(there, **{"a.md": "\n    cat tests/base/data.csv\n"}), "a.md:2", "data.csv")
    expect(check_docs, dict(there, **{"a.md": "`src/base/*.py`\n"}), "src/base/*.py")
    expect_clean(check_docs, dict(there, **{"CHANGELOG.md": "`b.c` went\n", "web/node_modules/x/a.md": "`b.c`\n"}))


SETTINGS = """static const struct key keys[] = {
\t{"order", CHOICE, AT(order), "x", 0, 0, orders,
\t "Who goes first.", true},
\t{"net_peers", TEXT, AT(net_peers), "", 0, 0, NULL,
\t "Whom."},
"""
SETTINGS_PAGE = "Count from the reload on: %s.\n\nNeed a restart: %s.\n"


def settings_stand_in_their_column():
    def tree_with(live, restart):
        return {"src/config/config.c": SETTINGS, "docs/administration.md": SETTINGS_PAGE % (live, restart)}
    expect_clean(check_docs, tree_with("`order`", "`net_*`"))
    expect(check_docs, tree_with("`order`", "sockets"), "'net_peers' needs a restart")
    expect(check_docs, tree_with("`order`, `ordr`", "`net_peers`"), "no setting 'ordr'")
    expect(check_docs, tree_with("`order`", "`net_peers`, `order`"), "'order' needs no restart")


def lists_leave_nothing_out():
    room = "- `src/queue/`: jobs. May use base\n  %s.\n"
    scenarios = {"tests/sched/scenarios/gang-whole/intent": "x", "tests/sched/scenarios/plugin-1-odd/intent": "x"}
    routes = {"src/server/routes.c": '{"GET", "/v1/a", a}, {"GET", "/v1/b", b},\n'}
    metrics = {"src/telemetry/page.c": 'head("takt_gpu_up");\n', "src/daemon/a.c": '"takt_no_metric"\n'}
    expect_clean(check_docs, dict(scenarios, **{"docs/research/sched-scenarios.md": "`gang-*`, `-odd`\n"}))
    expect(check_docs, dict(scenarios, **{"docs/research/sched-scenarios.md": "`gang-*`\n"}), "plugin-1-odd")
    expect_clean(check_docs, dict(routes, **{"docs/api.md": "GET `/v1/a`, `/v1/b`\n"}))
    expect(check_docs, dict(routes, **{"docs/api.md": "GET `/v1/a`\n"}), "route '/v1/b'")
    expect(check_docs, {"docs/api.md": "GET `/v1/a`\n"}, "no route in 'src/server/routes.c' any more")
    expect_clean(check_docs, dict(metrics, **{"docs/telemetry.md": "`up{gpu}`\n"}))
    expect(check_docs, dict(metrics, **{"docs/telemetry.md": "up\n"}), "takt_gpu_up")
    expect_clean(check_docs, {"docs/architecture.md": room % "sched model codec store engine"})
    expect(check_docs, {"docs/architecture.md": room % "sched"}, "src/queue", "codec engine model sched store")
    expect(check_docs, {"docs/architecture.md": "`a.h`\n", "src/base/a.h": "", "src/base/b.h": ""}, "no word of 'b.h'")
    front = {"README.md": "[index](docs/README.md)\n", "docs/README.md": "[b](research/b.md)\n", "docs/research/b.md": "page\n"}
    expect_clean(check_docs, front)
    expect(check_docs, dict(front, **{"README.md": "front\n"}), "README.md", "docs/README.md")
    expect(check_docs, dict(front, **{"docs/a.md": "page\n"}), "docs/README.md", "docs/a.md")


def pages_fit_a_terminal():
    index = {"README.md": "[index](docs/README.md)\n", "docs/README.md": "[a](a.md)\n"}

    def page(*lines):
        return dict(index, **{"docs/a.md": "\n".join(lines) + "\n"})
    expect_clean(check_docs, page("x " * 50, "- `" + "x " * 60 + "`", "", "    " + "x " * 60, "```", "x " * 60, "```"))
    expect(check_docs, page("title", "x " * 50 + "x"), "docs/a.md:2", "101 columns")
    expect(check_docs, page("| a | b |", "|---|---|", "| " + "x " * 50 + " | y |"), "docs/a.md:3", "columns")


# Purity, on real objects.

def archive(root, name, sources):
    for source, text in sources.items():
        path = os.path.join(root, source)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(CC + ["-O1", "-fPIC", "-c", path, "-o", path + ".o"], check=True)
    path = os.path.join(root, name)
    subprocess.run(["ar", "rcs", path] + [os.path.join(root, s + ".o") for s in sources],
                   check=True)
    return check_purity.load(path)


def impurities(room_text, base_text="int unused_here(void) { return 1; }\n"):
    with tempfile.TemporaryDirectory() as root:
        base = archive(root, "b.a", {"base1.c": base_text})
        return check_purity.check(archive(root, "r.a", {"room1.c": room_text}), base)[0]


def expect_impurity(word, *texts):
    problems = impurities(*texts)
    assert len(problems) == 1 and word in problems[0], (word, problems)


def arithmetic_is_pure():
    problems = impurities("#include <string.h>\nstatic const char *const t[] = {\"a\", \"b\"};\n"
                          "const char *f(int i, char *b) { memcpy(b, t[i], strlen(t[i]));"
                          " return t[i]; }\n")
    assert not problems, problems


def clocks_and_files_are_impure():
    expect_impurity("uses time", "long time(long *); long f(void) { return time(0); }\n")
    expect_impurity("uses fopen", "void *fopen(const char *, const char *);\n"
                    "void *f(void) { return fopen(\"x\", \"r\"); }\n")
    expect_impurity("uses malloc", "void *malloc(unsigned long);\n"
                    "void *f(void) { return malloc(9); }\n")


def globals_are_impure():
    expect_impurity("writable n", "static int n; int f(void) { return ++n; }\n")
    expect_impurity("writable n", "int n = 7;\n")
    problems = impurities("static _Thread_local int n = 3; int f(void) { return n++; }\n")
    assert any("writable n" in problem for problem in problems), problems


def impure_base_objects_count_if_pulled():
    base = "char *getenv(const char *); char *look(void) { return getenv(\"X\"); }\n"
    expect_impurity("base1.c.o uses getenv", "char *look(void); char *f(void) { return look(); }\n",
                    base)
    assert not impurities("int f(void) { return 1; }\n", base)


def room_that_was_not_built_is_named():
    with tree({"src/sched/a.c": ""}) as root:
        done = subprocess.run([sys.executable, os.path.join(TOOLS, "check_purity.py"), root, root],
                              capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "libtakt-sched.a" in done.stdout, done


# Patches that bring back past faults.

PATCH = """What breaks.
{}

--- a/src/base/a.c
+++ b/src/base/a.c
@@ -3,3 +3,2 @@
 int above;
-int mend;
 int below;
"""
WHOLE = "/* what it is */\n\nint above;\nint mend;\nint below;\nint rest;\n"


def patch_problems(source, head="Mended-by: 0123abc\nCaught-by: base / vec"):
    with tree({"src/base/a.c": source, "tests/faults/old.patch": PATCH.format(head)}) as root:
        return past_faults.check_patches(root)


def patches_fit():
    assert not patch_problems(WHOLE), patch_problems(WHOLE)
    assert not patch_problems("/* more above */\n" + WHOLE)


def patches_that_do_not_fit_are_named():
    problems = patch_problems(WHOLE.replace("below", "other"))
    assert len(problems) == 1 and "old: does not fit" in problems[0] and "a.c:3" in problems[0], problems


def patches_say_who_catches_them():
    problems = patch_problems(WHOLE, "Mended-by: 0123abc")
    assert len(problems) == 1 and "Caught-by" in problems[0], problems


TESTS = [
    table_has_no_circle, arrows_down_are_fine, arrow_up_is_named, the_twin_shares_nothing_but_base,
    pure_room_sees_no_store, abi_needs_nothing, paths_go_from_the_root, room_without_row,
    header_of_no_room, links_follow_the_table, names_are_unique, licence_comes_first,
    files_stay_short, build_folders_are_not_ours, long_function_is_named, median_and_p90_hold,
    banned_call_is_named, words_are_not_calls, work_left_for_later, line_comments_and_typedefs,
    lines_are_not_too_long, crash_points_have_one_place, odd_layout_is_named, links_lead_somewhere,
    files_of_pages_are_there, settings_stand_in_their_column, lists_leave_nothing_out, pages_fit_a_terminal, arithmetic_is_pure,
    clocks_and_files_are_impure, globals_are_impure, impure_base_objects_count_if_pulled,
    room_that_was_not_built_is_named,
    patches_fit, patches_that_do_not_fit_are_named, patches_say_who_catches_them, paces_are_told_on_one_page,
]

if __name__ == "__main__":
    sys.exit(tap.main(TESTS))
