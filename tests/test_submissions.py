"""Finding submissions in folders and zips, the hostile ones among them."""

from __future__ import annotations

import io
import os
import re
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from autograder import archives
from autograder.errors import AutograderError
from autograder.submission_ids import assign_ids
from autograder.submissions import Submission, find_submissions

NOTEBOOK = b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}'
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

Tree = Mapping[str, bytes]


def zipped(tree: Tree) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in tree.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def laid_out(folder: Path, tree: Tree) -> Path:
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def found(*paths: Path, scratch: Path | None = None, assignment: str = "hw4", **more: object) -> list[Submission]:
    scratch = scratch or Path(tempfile.mkdtemp(prefix="scratch-"))
    return find_submissions(paths, scratch, assignment=assignment, **more)  # type: ignore[arg-type]


def states(submissions: list[Submission]) -> dict[str, str]:
    """id → the beginning of the reason, empty for a readable one."""
    return {one.id: one.reason for one in submissions}


OTTER_EXPORT = zipped({"hw4.ipynb": NOTEBOOK, ".OTTER_LOG": b"\x80\x04.", "__zip_filename__": b"hw4_2024.zip"})

LAYOUTS: dict[str, tuple[Tree, set[str]]] = {
    "flat": ({"alice.ipynb": NOTEBOOK, "bob.ipynb": NOTEBOOK}, {"alice", "bob"}),
    "a folder per student": ({"alice/hw4.ipynb": NOTEBOOK, "bob/hw4.ipynb": NOTEBOOK}, {"alice-hw4", "bob-hw4"}),
    "names with spaces and accents": ({"Zoë  Müller (1).ipynb": NOTEBOOK}, {"Zoe-Muller-1"}),
    "students' zips": ({"alice.zip": OTTER_EXPORT, "bob.zip": zipped({"x/y/my.ipynb": NOTEBOOK})}, {"alice", "bob"}),
    "litter": (
        {
            "alice.ipynb": NOTEBOOK,
            ".ipynb_checkpoints/alice-checkpoint.ipynb": NOTEBOOK,
            "__MACOSX/._alice.ipynb": b"",
            "._alice.ipynb": b"",
            ".git/x.ipynb": NOTEBOOK,
            "readme.md": b"",
        },
        {"alice"},
    ),
    "modules beside a notebook": (
        {"alice/hw4.ipynb": NOTEBOOK, "alice/tensor.py": b"x = 1", "alice/files/more.py": b"x = 1"},
        {"alice-hw4"},
    ),
    "a script among notebooks": ({"a.ipynb": NOTEBOOK, "b.ipynb": NOTEBOOK, "c.py": b"x = 1"}, {"a", "b", "c"}),
    "a script with cell marks": ({"a.ipynb": NOTEBOOK, "b.py": b"# %%\nx = 1"}, {"a", "b"}),
    "a name with a suffix too many": ({"a.ipynb.txt": NOTEBOOK, "b.ipynb.json": NOTEBOOK}, {"a", "b"}),
    "a download among zips": (
        {"all.zip": zipped({"a/x.ipynb": NOTEBOOK, "b/x.ipynb": NOTEBOOK})},
        {"all-a-x", "all-b-x"},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_folders(tmp_path: Path, layout: str) -> None:
    tree, ids = LAYOUTS[layout]
    assert states(found(laid_out(tmp_path, tree))) == dict.fromkeys(ids, "")


DOWNLOADS: dict[str, tuple[Tree, set[str]]] = {
    "flat": ({"a_1_2_hw4.ipynb": NOTEBOOK, "b_3_4_hw4.ipynb": NOTEBOOK}, {"a_1_2_hw4", "b_3_4_hw4"}),
    "one folder around all": ({"hw4/a.ipynb": NOTEBOOK, "hw4/b.ipynb": NOTEBOOK}, {"a", "b"}),
    "a folder per student": ({"A B_1/hw4.ipynb": NOTEBOOK, "C_2/hw4.ipynb": NOTEBOOK}, {"A-B_1-hw4", "C_2-hw4"}),
    "students' zips": ({"a.zip": OTTER_EXPORT, "b/my.zip": OTTER_EXPORT, "c.ipynb": NOTEBOOK}, {"a", "b-my", "c"}),
    "litter": ({"a.ipynb": NOTEBOOK, "b.ipynb": NOTEBOOK, "__MACOSX/._a.ipynb": b"x"}, {"a", "b"}),
    "a student's export": ({"hw4.ipynb": NOTEBOOK, ".OTTER_LOG": b"", "plots/p.png": b""}, {"given"}),
    "a zip in a zip": ({"inner.zip": OTTER_EXPORT}, {"given"}),
    "Windows' separators": ({"a\\x.ipynb": NOTEBOOK, "b\\x.ipynb": NOTEBOOK}, {"a-x", "b-x"}),
}


@pytest.mark.parametrize("download", DOWNLOADS)
def test_zips_that_are_named(tmp_path: Path, download: str) -> None:
    tree, ids = DOWNLOADS[download]
    given = laid_out(tmp_path, {"given.zip": zipped(tree)}) / "given.zip"
    submissions = found(given)
    assert states(submissions) == dict.fromkeys(ids, "")
    assert {one.read() for one in submissions} == {NOTEBOOK}


def test_students_zip_with_two_notebooks(tmp_path: Path) -> None:
    both = zipped({"mine.ipynb": NOTEBOOK, "scratch.ipynb": NOTEBOOK, ".OTTER_LOG": b""})
    named = zipped({"HW_4 final.ipynb": NOTEBOOK, "scratch.ipynb": b"{}"})
    laid_out(tmp_path, {"a.zip": both, "b.zip": named})
    a, b = found(tmp_path)
    assert a.reason == "the zip file holds 2 notebooks, and one is graded: mine.ipynb, scratch.ipynb"
    assert (b.reason, b.read(), b.filename) == ("", NOTEBOOK, "HW_4 final.ipynb")


def test_a_zip_in_a_download_is_one_students(tmp_path: Path) -> None:
    two = zipped({"new/mine.ipynb": NOTEBOOK, "old/mine.ipynb": NOTEBOOK})
    laid_out(tmp_path, {"all.zip": zipped({"a.zip": two, "b.zip": OTTER_EXPORT})})
    reasons = states(found(tmp_path / "all.zip"))
    assert set(reasons) == {"a", "b"}
    assert "holds 2 notebooks" in reasons["a"]


def test_who_handed_in_no_notebook_still_appears(tmp_path: Path) -> None:
    tree = {"a/hw4.ipynb": NOTEBOOK, "b/essay.docx": b"PK", "c/notes.txt": b"", "d.zip": zipped({"x.pdf": b"%PDF"})}
    laid_out(tmp_path, tree)
    (tmp_path / "e").mkdir()
    reasons = states(found(tmp_path))
    assert set(reasons) == {"a-hw4", "b-essay.docx", "c", "d", "e"}
    assert reasons["c"] == "no notebook in this folder; found: notes.txt"
    assert reasons["d"] == "the zip file holds no notebook; found: x.pdf"
    assert reasons["e"] == "no notebook in this folder"


def test_who_handed_in_no_notebook_in_a_download(tmp_path: Path) -> None:
    tree = {"a/hw4.ipynb": NOTEBOOK, "b/hw4.zip": OTTER_EXPORT, "c/notes.txt": b""}
    laid_out(tmp_path, {"all.zip": zipped(tree)})
    reasons = states(found(tmp_path / "all.zip"))
    assert reasons == {"a-hw4": "", "b-hw4": "", "c": "no notebook in this folder; found: notes.txt"}


def test_handed_out_files_and_the_output_folder_are_no_submissions(tmp_path: Path) -> None:
    laid_out(tmp_path, {"a.ipynb": NOTEBOOK, "b.ipynb": NOTEBOOK, "tensor.py": b"", "out/report/a.html": b"<html>"})
    ignored: list[str] = []
    submissions = found(tmp_path, handed_out=["tensor.py"], skip=[tmp_path / "out"], ignored=ignored.append)
    assert set(states(submissions)) == {"a", "b"}
    assert ignored == ["tensor.py"]


def test_same_name_in_two_folders_given(tmp_path: Path) -> None:
    laid_out(tmp_path, {"one/hw4.ipynb": NOTEBOOK, "two/hw4.ipynb": NOTEBOOK})
    ids = set(states(found(tmp_path / "one", tmp_path / "two")))
    assert len(ids) == 2
    assert all(re.fullmatch(r"hw4-[0-9a-f]{8}", id) for id in ids)
    assert ids == set(states(found(tmp_path / "two", tmp_path / "one")))


def test_the_same_file_given_twice_counts_once(tmp_path: Path) -> None:
    laid_out(tmp_path, {"a.ipynb": NOTEBOOK, "b.zip": OTTER_EXPORT})
    paths = (tmp_path, tmp_path / "a.ipynb", tmp_path / "b.zip", tmp_path / "." / "a.ipynb")
    assert list(states(found(*paths))) == ["a", "b"]
    assert list(states(found(*reversed(paths)))) == ["a", "b"]


def test_ids_stay_when_others_come(tmp_path: Path) -> None:
    laid_out(tmp_path, {"Ünï.ipynb": NOTEBOOK, "作业.ipynb": NOTEBOOK, "index.ipynb": NOTEBOOK})
    before = set(states(found(tmp_path)))
    laid_out(tmp_path, {"a.ipynb": NOTEBOOK, "more/作业.ipynb": NOTEBOOK})
    assert before < set(states(found(tmp_path)))
    assert "index" not in before


@pytest.mark.parametrize("given", ["empty", "missing", "no notebooks"])
def test_nothing_to_grade_is_an_error(tmp_path: Path, given: str) -> None:
    (tmp_path / "empty").mkdir()
    laid_out(tmp_path, {"no notebooks/readme.md": b""})
    with pytest.raises(AutograderError, match=given):
        found(tmp_path / given)


def test_links_are_not_followed(tmp_path: Path) -> None:
    laid_out(tmp_path, {"secret/solutions.ipynb": NOTEBOOK, "class/a.ipynb": NOTEBOOK})
    (tmp_path / "class" / "b.ipynb").symlink_to(tmp_path / "secret" / "solutions.ipynb")
    (tmp_path / "class" / "c").symlink_to(tmp_path / "secret")
    (tmp_path / "class" / "d.ipynb").symlink_to("nowhere")
    os.mkfifo(tmp_path / "class" / "e.ipynb")
    reasons = states(found(tmp_path / "class"))
    assert set(reasons) == {"a", "b", "c", "d", "e"}
    assert reasons["a"] == ""
    assert all("link" in reasons[id] for id in "bcd")
    assert reasons["e"] == "it is not an ordinary file"


def link_in_zip(name: str, target: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, target)
    return buffer.getvalue()


def test_links_in_zips_are_not_followed(tmp_path: Path) -> None:
    laid_out(tmp_path, {"a.zip": link_in_zip("hw4.ipynb", "/etc/passwd")})
    assert "link" in states(found(tmp_path))["a"]


@pytest.mark.parametrize(
    "name", ["../../escaped.ipynb", "/tmp/escaped.ipynb", "C:\\escaped.ipynb", "a/../../escaped.ipynb"]
)
def test_paths_that_lead_out_of_a_zip_lead_nowhere(tmp_path: Path, name: str) -> None:
    laid_out(tmp_path, {"class/a.zip": zipped({name: NOTEBOOK})})
    scratch = tmp_path / "deep" / "scratch"
    [one] = found(tmp_path / "class", scratch=scratch)
    assert (one.id, one.read()) == ("a", NOTEBOOK)
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {tmp_path / "class" / "a.zip", scratch / "000000"}
    assert not Path("/tmp/escaped.ipynb").exists()


def claiming(size: int, content: bytes) -> bytes:
    """A zip whose headers claim another size than the content has."""
    data = bytearray(zipped({"hw4.ipynb": content}))
    real = len(content).to_bytes(4, "little")
    return bytes(data.replace(real, size.to_bytes(4, "little")))


def test_zip_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER", 10_000)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 50)
    monkeypatch.setattr(archives, "MAX_TOTAL", 60_000)
    deep = OTTER_EXPORT
    for _ in range(5):
        deep = zipped({"x.zip": deep})
    laid_out(
        tmp_path,
        {
            "large.zip": zipped({"hw4.ipynb": b"0" * 20_000}),
            "many.zip": zipped({f"{n}.txt": b"" for n in range(60)}),
            "total.zip": zipped({"hw4.ipynb": NOTEBOOK, "data.bin": os.urandom(70_000)}),
            "deep.zip": deep,
            "liar.zip": claiming(9_000, os.urandom(12_000)),
            "overlap.zip": claiming(2**31, NOTEBOOK * 20),
            "fine.zip": OTTER_EXPORT,
        },
    )
    reasons = states(found(tmp_path))
    assert "at most" in reasons["large"]
    assert "more than 50 files" in reasons["many"]
    assert "claims to hold" in reasons["total"]
    assert "3 deep" in reasons["deep"]
    assert "damaged" in reasons["liar"]
    assert "claims to hold" in reasons["overlap"]
    assert reasons["fine"] == ""


def test_a_directory_too_long_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_DIRECTORY", 500)
    laid_out(tmp_path, {"a.zip": zipped({f"{n}.txt": b"" for n in range(60)})})
    assert "lists more than" in states(found(tmp_path))["a"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "not a zip", id="empty"),
        pytest.param(b"hello", "not a zip", id="text"),
        pytest.param(OTTER_EXPORT[:-40], "damaged", id="cut off"),
        pytest.param(zipped({}), "no notebook", id="nothing inside"),
        pytest.param(OTTER_EXPORT.replace(NOTEBOOK[:9], b"\x00" * 9), "", id="content of any kind"),
    ],
)
def test_broken_zips(tmp_path: Path, content: bytes, reason: str) -> None:
    laid_out(tmp_path, {"a.zip": content})
    assert reason in states(found(tmp_path / "a.zip"))["a"]


def test_a_locked_zip(tmp_path: Path) -> None:
    data = bytearray(zipped({"hw4.ipynb": NOTEBOOK}))
    for header, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(header) + offset] |= 1
    laid_out(tmp_path, {"a.zip": bytes(data)})
    assert "password" in states(found(tmp_path))["a"]


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.ipynb").open("wb") as file:
        file.truncate(2**40)  # sparse
    assert "1,048,576 MB" in states(found(tmp_path))["a"]


def test_any_file_that_is_named_is_a_submission(tmp_path: Path) -> None:
    laid_out(tmp_path, {"homework": NOTEBOOK, "export": OTTER_EXPORT, "essay.pdf": b"%PDF"})
    paths = [tmp_path / name for name in ("homework", "export", "essay.pdf")]
    assert set(states(found(*paths))) == {"homework", "export", "essay.pdf"}


NAME = st.text(st.sampled_from("aA\\/.é作 \x00\x1b-"), min_size=1, max_size=8)


@unhurried
@given(st.lists(st.tuples(st.lists(NAME, min_size=1, max_size=3).map(tuple), NAME), max_size=8))
@example([(("a", "b"), "x"), (("a-b",), "x"), (("A-b",), "x"), (("",), "")])
def test_ids_are_different_and_safe(paths: list[tuple[tuple[str, ...], str]]) -> None:
    ids = assign_ids(paths)
    assert len({id.lower() for id in ids}) == len(paths)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,90}", id) for id in ids)


CONTENT = st.binary(max_size=40) | st.just(NOTEBOOK) | st.just(OTTER_EXPORT)
FILE = st.tuples(
    NAME.filter(lambda name: name[0] != "\0"), st.sampled_from([".ipynb", ".zip", ".py", ".pdf", "", "/"])
).map("".join)


@unhurried
@given(st.dictionaries(FILE, CONTENT, max_size=6), st.integers(0, 60), st.binary(max_size=3), st.booleans())
def test_any_zip(tree: dict[str, bytes], place: int, damage: bytes, named: bool) -> None:
    data = zipped(tree)
    data = data[:place] + damage + data[place + len(damage) :]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        laid_out(folder, {"class/given.zip": data})
        submissions = found(folder / "class" / "given.zip" if named else folder / "class", scratch=folder / "scratch")
        assert submissions
        for one in submissions:
            assert bool(one.reason) == (one.path is None)
        outside = {path for path in folder.rglob("*") if path.is_file() and path.parent != folder / "scratch"}
        assert outside == {folder / "class" / "given.zip"}
