"""The pytest side of the package: options, marks, and the fixtures `compare` and `observe`.

`pytest assignments/<hw> --submission FILE` runs the hidden cases on one notebook; without a submission they run on the
reference solutions. Grading a class uses the same plugin, with an examination already under way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from autograder.case_items import MARKERS, assignment_name, cpu_limit, describe_item

if TYPE_CHECKING:
    from autograder.examination import Examination

EXAMINATIONS = pytest.StashKey[dict[str, "Examination"]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder", "grading notebooks")
    group.addoption("--submission", metavar="FILE", help="the notebook on which the hidden cases run")
    group.addoption(
        "--isolation", metavar="MODE", default="auto", help="auto, bwrap, uid or none: how student code is confined"
    )


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    config.stash.setdefault(EXAMINATIONS, {})


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """Judges a case that fails on a part of a shared observation again, on that part alone.

    So no verdict that costs marks rests on what another case's part left behind.
    """
    if "_case" not in pyfuncitem.funcargs:
        return (yield)
    examination, *_ = cast("tuple[Examination, float, str]", pyfuncitem.funcargs["_case"])
    examination.begin_case(alone=False)
    try:
        return (yield)
    except (Exception, pytest.fail.Exception):
        if not examination.shared:
            raise
    examination.begin_case(alone=True)
    arguments = inspect.signature(pyfuncitem.obj).parameters
    pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in arguments})
    return True


@pytest.fixture(scope="session")
def _opened(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Examination]]:
    """Opens an examination per assignment when none is under way, and ends them with the session."""
    from contextlib import ExitStack

    from autograder.errors import AutograderError, UnreadableSubmission
    from autograder.examination import examination_of
    from autograder.project import load_assignment

    config = request.config
    submission, isolation = config.getoption("--submission"), config.getoption("--isolation")
    examinations = config.stash[EXAMINATIONS]
    with ExitStack() as stack:

        def opened(name: str) -> Examination:
            if name not in examinations:
                try:
                    assignment = load_assignment(name)
                    examinations[name] = stack.enter_context(examination_of(assignment, submission, isolation))
                except (AutograderError, UnreadableSubmission, OSError) as error:
                    pytest.exit(f"autograder: {submission or name}: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
            return examinations[name]

        yield opened


@pytest.fixture
def _case(request: pytest.FixtureRequest, _opened: Callable[[str], Examination]) -> tuple[Examination, float, str]:
    name = assignment_name(request.node.path)
    if name is None:
        raise pytest.UsageError(f"{request.node.path}: compare and observe work below assignments/<hw>/ only")
    examination = _opened(name)
    limits = examination.reference.assignment.limits
    info = describe_item(request.node)
    return examination, cpu_limit(request.node, limits.case_seconds), info.question


@pytest.fixture
def compare(_case: tuple[Examination, float, str]) -> Callable[..., None]:
    """`compare(probe, *inputs, rtol=None, atol=None, forbid=(), part=None)`: both sides run it and must agree."""
    examination, seconds, question = _case

    def run(
        probe: Callable[..., Any],
        *inputs: Any,
        rtol: float | None = None,
        atol: float | None = None,
        forbid: tuple[str, ...] = (),
        part: str | None = None,
    ) -> None:
        __tracebackhide__ = True
        examination.compare(
            probe, inputs, seconds=seconds, forbid=forbid, rtol=rtol, atol=atol, question=question, part=part
        )

    return run


@pytest.fixture
def observe(_case: tuple[Examination, float, str]) -> Callable[..., Any]:
    """`observe(probe, *inputs, forbid=(), part=None)`: the student's plain observation, for bands and inequalities."""
    examination, seconds, _ = _case

    def run(probe: Callable[..., Any], *inputs: Any, forbid: tuple[str, ...] = (), part: str | None = None) -> Any:
        __tracebackhide__ = True
        return examination.observe(probe, inputs, seconds=seconds, forbid=forbid, part=part)

    return run
