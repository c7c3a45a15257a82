"""Reading what students hand in: every kind of broken notebook, and any bytes at all."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from autograder import notebook as reader
from autograder.errors import UnreadableSubmission
from autograder.notebook import Notebook, read_notebook


def code(source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source, **more}


def notebook(*cells: Any, **more: Any) -> dict[str, Any]:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells), **more}


def read(content: Any, filename: str = "hw4.ipynb") -> Notebook:
    return read_notebook(content if isinstance(content, bytes) else json.dumps(content).encode(), filename)


def sources(content: Any, filename: str = "hw4.ipynb") -> list[str]:
    return [cell.source for cell in read(content, filename).cells]


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


PLAIN = notebook({"cell_type": "markdown", "source": "# Title"}, code("x = 'é'\ny = 2"), code("z = 3"))
CODE = ["x = 'é'\ny = 2", "z = 3"]
TEXT = json.dumps(PLAIN, ensure_ascii=False, indent=1)


def test_a_sound_notebook_needs_no_notes() -> None:
    result = read(PLAIN)
    assert [(cell.index, cell.source) for cell in result.cells] == [(1, CODE[0]), (2, CODE[1])]
    assert result.notes == ()


@pytest.mark.parametrize(
    ("data", "note"),
    [
        pytest.param(b"\xef\xbb\xbf" + TEXT.encode(), "byte-order mark", id="utf-8 with a mark"),
        pytest.param(TEXT.encode("utf-16"), "UTF-16", id="utf-16 with a mark"),
        pytest.param(TEXT.encode("utf-16-le"), "UTF-16", id="utf-16 without a mark"),
        pytest.param(TEXT.encode("utf-16-be"), "UTF-16", id="utf-16, big end first"),
        pytest.param(TEXT.encode("utf-32"), "UTF-32", id="utf-32"),
        pytest.param(TEXT.encode("latin-1"), "not UTF-8", id="latin-1"),
        pytest.param(TEXT.encode() + b"\n}\n", "after the end", id="a brace too many"),
        pytest.param(TEXT.encode() + b"\x00" * 512, "", id="padded with zeros"),
        pytest.param(zipped(hw4__ipynb=TEXT.encode()), "zip", id="a zip under a notebook's name"),
        pytest.param(b"\r\n".join(TEXT.encode().split(b"\n")), "", id="crlf between the lines of JSON"),
        pytest.param(
            TEXT.encode().replace(b"x = '\xc3\xa9'\\n", b"x = '\xc3\xa9'\n"), "", id="raw line break in a string"
        ),
    ],
)
def test_encodings_and_wrappings(data: bytes, note: str) -> None:
    result = read(data)
    assert [cell.source for cell in result.cells] == CODE
    assert note in " ".join(result.notes)


def test_utf8_with_one_bad_byte_keeps_its_good_letters() -> None:
    data = TEXT.encode().replace(b"z = 3", b"\xcf\x83 = 3 # \xe9")
    assert sources(data) == [CODE[0], "σ = 3 # é"]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        pytest.param({"nbformat": 4, "nbformat_minor": 99}, "newer format (4.99)", id="newer minor"),
        pytest.param({"nbformat": 5}, "newer format", id="newer major"),
        pytest.param({"nbformat": None}, "does not say", id="no version"),
        pytest.param({"metadata": []}, "", id="metadata of the wrong type"),
        pytest.param({"metadata": {"kernelspec": {"name": "venv-of-anna"}}}, "", id="kernel of another machine"),
        pytest.param({"metadata": {"kernelspec": {"language": "R"}}}, "another language (R)", id="another language"),
        pytest.param(
            {"metadata": {"language_info": {"name": "julia"}}}, "(julia)", id="another language, second place"
        ),
        pytest.param({"metadata": {"colab": {"provenance": []}, "accelerator": "GPU"}}, "", id="Colab"),
    ],
)
def test_odd_notebook_metadata(changed: dict[str, Any], note: str) -> None:
    result = read({**PLAIN, **changed})
    assert [cell.source for cell in result.cells] == CODE
    assert note in " ".join(result.notes)


@pytest.mark.parametrize(
    ("cell", "source"),
    [
        pytest.param(code(["a = 1\n", "b = 2"]), "a = 1\nb = 2", id="list"),
        pytest.param(code(["a = 1", "b = 2"]), "a = 1\nb = 2", id="list without line ends"),
        pytest.param(code(["a = 1\n", None, 3]), "a = 1\n", id="list with things that are no text"),
        pytest.param(code("a = 1\r\nb = 2\r"), "a = 1\nb = 2\n", id="crlf"),
        pytest.param(code(7), "", id="a number"),
        pytest.param(code(None), "", id="null"),
        pytest.param({"cell_type": "code"}, "", id="nothing"),
        pytest.param({"source": "a = 1", "outputs": []}, "a = 1", id="no type, with outputs"),
        pytest.param(code("a = 1", id="x" * 900), "a = 1", id="an id that breaks the rules"),
        pytest.param(code("a = 1", metadata=None, outputs="?"), "a = 1", id="metadata null, outputs text"),
        pytest.param(code("a\x00 = 1"), "a = 1", id="null character"),
        pytest.param(code("a = '\ud800'"), "a = '\ufffd'", id="lone surrogate"),
        pytest.param(code("a = '\ud83d\ude00'"), "a = '😀'", id="surrogate pair"),
    ],
)
def test_odd_cells(cell: dict[str, Any], source: str) -> None:
    assert sources(notebook("no cell", None, cell, code("last = 1"))) == [source, "last = 1"]


def test_tags_are_kept() -> None:
    cells = read(
        notebook(code("a", metadata={"tags": ["otter_ignore", 3]}), code("b", metadata={"tags": "x, y"}))
    ).cells
    assert [cell.tags for cell in cells] == [("otter_ignore",), ("x", "y")]


def test_version_3_has_worksheets_and_input() -> None:
    cells = [{"cell_type": "heading", "level": 1, "source": "T"}, {"cell_type": "code", "input": ["a = 1\n", "b = 2"]}]
    result = read(
        {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}, None]}
    )
    assert [(cell.index, cell.source) for cell in result.cells] == [(1, "a = 1\nb = 2")]
    assert "format 3" in result.notes[0]


def test_duplicate_ids_are_noted_and_harmless() -> None:
    result = read(notebook(code("a", id="same"), code("b", id="same")))
    assert len(result.cells) == 2
    assert "share an id" in result.notes[0]


def test_outputs_do_not_count_as_code() -> None:
    bulky = code("a = 1", outputs=[{"output_type": "stream", "name": "stdout", "text": "x" * 6_000_000}])
    result = read(notebook(bulky))
    assert [cell.source for cell in result.cells] == ["a = 1"]
    assert "outputs" in result.notes[0]


CONFLICT = """{
 "cells": [
  {"cell_type": "code", "source": "a = 1"},
<<<<<<< HEAD
  {"cell_type": "code", "source": "b = 'mine'"}
||||||| base
  {"cell_type": "code", "source": "b = ..."}
=======
  {"cell_type": "code", "source": "b = 'theirs'"}
>>>>>>> origin/main
 ],
 "metadata": {}, "nbformat": 4, "nbformat_minor": 5
}"""


def test_merge_conflicts_are_resolved_to_one_side() -> None:
    result = read(CONFLICT.encode())
    assert [cell.source for cell in result.cells] == ["a = 1", "b = 'mine'"]
    assert "first side" in result.notes[0]
    broken_first = CONFLICT.replace("'mine'\"}", "'mine'\"")
    assert sources(broken_first.encode()) == ["a = 1", "b = 'theirs'"]


def test_databricks_cells_of_other_languages_are_left_out() -> None:
    cells = (code("%python\na = 1"), code("%sql\nselect 1"), code("b = 2"))
    metadata = {"application/vnd.databricks.v1+notebook": {}}
    assert sources(notebook(*cells, metadata=metadata)) == ["a = 1", "", "b = 2"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            "# %% [markdown]\n# Title\n\n# %%\na = 1\n\nb = 2\n# %%\nc = (\n", ["a = 1\n\nb = 2", "c = ("], id="percent"
        ),
        pytest.param("#%%\na = 1\n#%%\nb = 2", ["a = 1", "b = 2"], id="Spyder and VS Code"),
        pytest.param("# coding: utf-8\n\n# In[1]:\n\na = 1\n\n# In[ ]:\n\nb = 2", None, id="nbconvert"),
        pytest.param("import math\n\ndef f(x):\n    y = x\n\n    return y\n\nz = f(1)\n", None, id="plain"),
        pytest.param(
            "# Databricks notebook source\na = 1\n# COMMAND ----------\n"
            "# MAGIC %md\n# MAGIC hi\n# COMMAND ----------\nb = 2",
            ["a = 1", "b = 2"],
            id="Databricks",
        ),
        pytest.param('---\njupyter: {"\n---\n\na = 1\n', None, id="a header that is no YAML"),
    ],
)
def test_scripts(script: str, expected: list[str] | None) -> None:
    cells = sources(script.encode(), "hw4.py")
    if expected is not None:
        assert cells == expected
    assert len(cells) > 1 or "---" in script


def test_a_class_with_a_comment_at_the_margin_stays_whole() -> None:
    script = (
        "class A:\n    def f(self):\n        return 1\n\n# remark\n\n    def g(self):\n        return 2\n\nx = A()\n"
    )
    assert [compile(source, "cell", "exec") and source.split()[0] for source in sources(script.encode(), "a.py")][
        -1
    ] == "x"


def test_scripts_keep_tags_and_magics() -> None:
    cells = read(b'# %% tags=["otter_ignore"]\na = 1\n# %%\n# !pip install torch\n', "a.py").cells
    assert cells[0].tags == ("otter_ignore",)
    assert cells[1].source == "!pip install torch"


def test_a_script_under_a_notebooks_name_and_the_other_way_round() -> None:
    assert sources(b"import math\n\nx = math.pi\n", "hw4.ipynb") == ["import math", "x = math.pi"]
    assert sources(TEXT.encode(), "hw4.py") == CODE


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \r\n\x00\x00", "empty", id="blank"),
        pytest.param(b"\xff\xfe", "empty", id="a byte-order mark alone"),
        pytest.param(TEXT.encode()[:-60], "cut off", id="truncated"),
        pytest.param(TEXT.encode()[: TEXT.index("y = 2")], "cut off", id="truncated in a string"),
        pytest.param(TEXT.replace('"metadata"', "metadata").encode(), "invalid JSON on line", id="not JSON"),
        pytest.param(b"<!DOCTYPE html>\n<html>", "web page", id="html"),
        pytest.param(b"<?xml version='1.0'?><a/>", "web page", id="xml"),
        pytest.param(b"%PDF-1.7 ...", "PDF", id="pdf"),
        pytest.param(b"Rar!\x1a\x07", "RAR", id="rar"),
        pytest.param(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS", id="LFS pointer"),
        pytest.param(b"Dear professor, my notebook is attached.", "begins with 'Dear", id="a letter"),
        pytest.param(b'{"a": 1}', "no list of cells", id="other JSON"),
        pytest.param(b"[1, 2]", "no list of cells", id="a list"),
        pytest.param(b'{"cells": ' + b"[" * 100_000, "nested too deeply", id="deep JSON"),
        pytest.param(b'{"cells": [' + b'{"a":' * 100_000, "nested too deeply", id="deep objects"),
        pytest.param(CONFLICT.replace("'mine'\"}", "").replace("'theirs'\"}", "").encode(), "conflicts", id="conflict"),
        pytest.param(zipped(a__txt=b"x"), "no notebook", id="zip without"),
        pytest.param(zipped(a__ipynb=b"{}", b__ipynb=b"{}"), "2 notebooks", id="zip with two"),
        pytest.param(zipped(a__ipynb=zipped(b__ipynb=b"{}")), "one again", id="zip in a zip"),
        pytest.param(zipped(a__ipynb=TEXT.encode())[:-30], "damaged", id="half a zip"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableSubmission, match=reason) as caught:
        read(data)
    assert "\n" not in str(caught.value)


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 1000)
    with pytest.raises(UnreadableSubmission, match="at most"):
        read(b" " * 1001)
    monkeypatch.undo()
    monkeypatch.setattr(reader, "MAX_CELLS", 2)
    with pytest.raises(UnreadableSubmission, match="3 code cells"):
        read(notebook(code("a"), code("b"), code("c")))
    monkeypatch.setattr(reader, "MAX_CODE", 10)
    with pytest.raises(UnreadableSubmission, match="of code"):
        read(notebook(code("a" * 11)))


def test_an_empty_notebook_is_a_notebook() -> None:
    assert read(notebook()).cells == ()
    assert "no code" in read(notebook()).notes[0]


def test_integers_too_long_to_read_do_no_harm() -> None:
    data = b'{"nbformat": ' + b"9" * 5000 + b', "cells": [{"cell_type": "code", "source": "a = 1"}]}'
    assert sources(data) == ["a = 1"]


unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["cells", "source", "tags"]), inner),
    max_leaves=6,
)
CELL = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": ANY_JSON | st.just("code"),
        "source": ANY_JSON | st.lists(st.text()),
        "input": ANY_JSON,
        "metadata": ANY_JSON | st.fixed_dictionaries({"tags": ANY_JSON}),
        "outputs": ANY_JSON,
        "id": ANY_JSON,
    },
)
LIKE_A_NOTEBOOK = st.fixed_dictionaries(
    {},
    optional={
        "cells": ANY_JSON | st.lists(CELL),
        "worksheets": ANY_JSON | st.lists(st.fixed_dictionaries({"cells": ANY_JSON | st.lists(CELL)})),
        "metadata": ANY_JSON | st.fixed_dictionaries({"kernelspec": ANY_JSON, "language_info": ANY_JSON}),
        "nbformat": ANY_JSON,
        "nbformat_minor": ANY_JSON,
    },
)


def assert_read_or_refused(data: bytes, filename: str) -> None:
    try:
        result = read_notebook(data, filename)
    except UnreadableSubmission as refusal:
        assert str(refusal)
        assert "\n" not in str(refusal)
    else:
        for cell in result.cells:
            cell.source.encode()
            assert "\x00" not in cell.source
            assert "\r" not in cell.source


@unhurried
@given(LIKE_A_NOTEBOOK, st.sampled_from(["a.ipynb", "a.py"]))
def test_anything_like_a_notebook(content: Any, filename: str) -> None:
    assert_read_or_refused(json.dumps(content).encode(), filename)


@unhurried
@given(st.binary(), st.sampled_from(["a.ipynb", "a.py", "a", ""]))
@example(b"PK\x03\x04", "a.ipynb")
@example(b"\x00\x00\xfe\xff", "a.py")
def test_any_bytes(data: bytes, filename: str) -> None:
    assert_read_or_refused(data, filename)


@unhurried
@given(st.text(), st.sampled_from(["a.ipynb", "a.py"]))
@example("# %% [markdown] {\n", "a.py")
@example("# + {\n", "a.py")
def test_any_text(text: str, filename: str) -> None:
    assert_read_or_refused(text.encode("utf-8", "surrogatepass"), filename)


@unhurried
@given(st.integers(0, len(TEXT)), st.binary(max_size=4))
def test_a_notebook_with_a_hole(place: int, filler: bytes) -> None:
    data = TEXT.encode()
    assert_read_or_refused(data[:place] + filler + data[place + 3 :], "a.ipynb")
