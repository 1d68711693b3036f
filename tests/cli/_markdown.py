"""Runs the code of a page, so that what a reader reads is what the tests test."""
import pathlib
import re

FENCE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def run_python(path):
    """Executes the page's python blocks in order; the names they define. Tracebacks point into the page."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    if not blocks:
        raise ValueError(f"{path} has no python blocks")
    names = {}
    for block in blocks:
        above = text.count("\n", 0, block.start(1))
        exec(compile("\n" * above + block.group(1), str(path), "exec"), names)
    return names
