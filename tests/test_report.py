"""The pages: what students may see, what they may not, and text that wants to be markup."""

from __future__ import annotations

import html.parser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.plaintext import one_line, plain
from autograder.report import index_path, write_report
from autograder.report.pages import class_page, marked, student_page
from autograder.report.statistics import case_statistics
from autograder.results import Cell, Result
from tests.toy_class import graded

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7 * 7 }}{% raw %}"


class Elements(html.parser.HTMLParser):
    """The tags and attributes that a browser would find."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, list[str]] = {}
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


def ungradable(submission: str, reason: str) -> Result:
    result = graded(submission, 0.0, 0.0, status="ungradable", reason=reason)
    for question in result.questions:
        question.cases[0].outcome = "missing"
    return result


def test_a_students_page() -> None:
    page = student_page(graded("anna", half=0.0, cells=[Cell(3, "raised", "NameError: gamma"), Cell(4, "ok")]))
    text = " ".join(Elements(page).text.split())
    assert "anna" in text
    assert "2 of 3 points" in text
    assert "Half half 0 / 1 A number failed 0 / 1 look at half" in text
    assert "Cell 4 raised an error NameError: gamma" in text
    assert "Cell 5" not in text


def test_a_students_page_never_shows_details_and_the_class_page_neither() -> None:
    results = [graded("anna", half=0.0), ungradable("ben", "empty")]
    for page in (student_page(results[0]), student_page(results[1]), class_page(results)):
        assert "SECRET" not in page
        assert "3.5" not in page


def test_an_ungradable_one_has_a_reason_and_no_points() -> None:
    page = student_page(ungradable("ben", "the file is cut off"))
    assert "the file is cut off" in page
    assert "of 3 points" not in page
    overview = class_page([graded("anna"), ungradable("ben", "the file is cut off")])
    assert "1 could not be graded" in overview
    assert "the file is cut off" in overview
    assert "mean 3.0 of 3 points" in " ".join(overview.split())


def test_the_class_page_has_rates_isolation_and_links() -> None:
    results = [graded("a"), graded("b", half=0.0), graded("c", half=0.0), graded("d", half=0.0)]
    page = class_page(results)
    assert "25 %" in page
    assert "3 failed" in page
    assert "mode none" in page
    assert {"a.html", "b.html", "c.html", "d.html"} <= set(Elements(page).attributes["href"])


def test_no_isolation_is_said_on_every_page() -> None:
    result = graded("a", isolation=["mode none", "NOT ISOLATED: limits only"])
    assert "without isolation" in student_page(result)
    assert "without isolation" in class_page([result])
    assert "without isolation" not in class_page([graded("a", isolation=["mode bwrap"])])


def test_case_statistics_count_outcomes() -> None:
    statistics = case_statistics([graded("a"), graded("b", twice=0.0)])
    assert [(case.id, case.passed, dict(case.outcomes)) for case in statistics] == [
        ("test_twice.py::test_a_number", 0.5, {"passed": 1, "failed": 1}),
        ("test_half.py::test_a_number", 1.0, {"passed": 2}),
    ]


def hostile_result(text: str) -> Result:
    result = graded("a", 0.0, 0.0, reason=text, notes=[text], isolation=[text])
    result.assignment = text
    result.cells = [Cell(0, "raised", text)]
    for question in result.questions:
        question.title = question.id = text
        question.cases[0].title = question.cases[0].hint = question.cases[0].id = text
    return result


def bare_tags() -> tuple[set[str], set[str]]:
    found = []
    for status in ("graded", "ungradable"):
        harmless = hostile_result("x")
        harmless.status = status  # type: ignore[assignment]
        found += [Elements(student_page(harmless)), Elements(class_page([harmless]))]
    return set().union(*(one.tags for one in found)), set().union(*(one.attributes for one in found))


TAGS, ATTRIBUTES = bare_tags()


@pytest.mark.parametrize("status", ["graded", "ungradable"])
def test_hostile_text_stays_text(status: str) -> None:
    result = hostile_result(HOSTILE)
    result.status = status  # type: ignore[assignment]
    for page in (student_page(result), class_page([result])):
        found = Elements(page)
        assert found.tags <= TAGS
        assert set(found.attributes) <= ATTRIBUTES
        assert "script" not in found.tags
        assert "{{ 7 * 7 }}" in found.text
        assert "default-src 'none'" in found.attributes["content"][0]


@settings(deadline=None, max_examples=40)
@given(
    st.text(max_size=60) | st.sampled_from(["</pre></td><b onclick=1>", "\x1b[31m\x1b]0;x\x07", "\u202eabc", "\ud800"])
)
def test_any_text_stays_text_that_can_be_written(text: str) -> None:
    result = hostile_result(text)
    for page in (student_page(result), class_page([result])):
        assert Elements(page).tags <= TAGS
        assert not {"\x1b", "\x00", "\u202e", "\x07"} & set(page)
        page.encode()


def test_long_text_is_bounded_and_says_so() -> None:
    page = student_page(graded("a", cells=[Cell(0, "raised", "x" * 2_000_000)]))
    assert len(page) < 20_000
    assert "1,996,000 more characters" in page


def test_many_failed_cells_are_bounded() -> None:
    page = student_page(graded("a", cells=[Cell(index, "raised", "m") for index in range(1000)]))
    assert "800 more cells" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain σ text\nand more", "plain σ text\nand more"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\x08b\x00", "a\ufffdb\ufffd"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("x" * 4003, "x" * 4000 + " [3 more characters]"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_one_line() -> None:
    assert one_line(" a\n b\t\tc ") == "a b c"


def test_pages_are_written(tmp_path: Path) -> None:
    assert write_report(tmp_path, [graded("a"), graded("b")]) == index_path(tmp_path)
    assert {path.name for path in (tmp_path / "report").iterdir()} == {"index.html", "a.html", "b.html"}


def test_no_results_make_a_page_too() -> None:
    assert "0 submissions" in class_page([])


@pytest.mark.parametrize(
    "hint, shown",
    [
        ("Use `nn.ModuleList`: the *biased* one.", "Use <code>nn.ModuleList</code>: the <em>biased</em> one."),
        ("a * b * c and 2*3*4x", "a * b * c and 2*3*4x"),
        ("`<script>` *<b>x</b>*", "<code>&lt;script&gt;</code> *&lt;b&gt;x&lt;/b&gt;*"),
        ("one ` alone", "one ` alone"),
    ],
)
def test_code_and_emphasis_in_hints_are_shown_as_such(hint, shown):
    assert marked(hint) == shown
