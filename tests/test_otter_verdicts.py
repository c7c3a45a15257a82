"""Our results in Otter's classes, and what a student gets to read."""

import io
import json
import pickle

from otter.test_files import GradingResults

from autograder.otter import verdicts
from autograder.results import Case, QuestionResult, Result
from tests.otter_support import DETAIL, HINT, gradescope, not_graded, result


def test_every_question_has_exactly_our_points():
    results = GradingResults([])
    verdicts.fill(results, result())
    assert {id: (file.score, file.possible) for id, file in results.results.items()} == {
        "first": (1.0, 3.0),
        "second": (2.0, 2.0),
    }
    assert (results.total, results.possible) == (3.0, 5.0)


def test_what_otter_found_does_not_count():
    results = GradingResults.without_results(RuntimeError("the kernel died"))
    verdicts.fill(results, result())
    assert not results.has_catastrophic_failure()
    assert results.total == 3.0


def test_points_that_do_not_add_up_exactly_are_shown_round():
    shared = [Case(f"t::{i}", "Part", 0.1, 0.1, "passed") for i in range(3)]
    question = QuestionResult("first", "The first", 0.1 + 0.1 + 0.1, 0.3, shared)
    assert verdicts.test_file(question, result()).score == 0.3


def test_the_student_reads_the_hint_and_never_the_detail():
    results = GradingResults([])
    verdicts.fill(results, result())
    shown = json.dumps(gradescope(results)) + results.summary()
    assert HINT in shown
    assert DETAIL not in shown


def test_nothing_claims_that_all_tests_passed_beside_lost_points():
    results = GradingResults([])
    verdicts.fill(results, result())
    outputs = {test["name"]: test["output"] for test in gradescope(results)["tests"]}
    assert sorted(outputs) == ["The first", "The second"]
    assert "passed!" not in outputs["The first"]
    assert "failed (0 of 2 points)" in outputs["The first"]


def test_the_student_reads_which_cells_did_not_run():
    text = verdicts.student_text(result())
    assert "3 of 5 points" in text
    assert "cell 5: raised. NameError: x" in text
    assert "cell 1" not in text


def test_the_instructor_can_get_the_whole_record():
    results = GradingResults([])
    verdicts.fill(results, result())
    assert Result.from_json(json.dumps(verdicts.record(results))) == result()


def test_the_pickled_results_need_nothing_of_ours():
    needed = set()

    class Recording(pickle.Unpickler):
        def find_class(self, module, name):
            needed.add(module.partition(".")[0])
            return super().find_class(module, name)

    results = GradingResults([])
    verdicts.fill(results, not_graded())
    verdicts.mark_failed(results, "not graded")
    Recording(io.BytesIO(pickle.dumps(results))).load()
    assert needed <= {"otter", "builtins", "collections", "copyreg"}
