"""The command line: `autograder COMMAND`. What takes long to import is imported by the command that needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from autograder import __version__
from autograder.errors import AutograderError

_FOLDER = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="autograder")
def cli() -> None:
    """Grades coursework notebooks; no student code ever runs where the verdict is reached.

    \b
    Example:
      autograder grade hw4_pytorch_init_norm submissions/ -o out
    """


@cli.command("list")
def list_command() -> int:
    """Lists the assignments.

    Their questions, with points and number of hidden cases.

    \b
    Example:
      autograder list
    """
    from autograder.commands.authors import list_all

    return list_all()


@cli.command()
@click.argument("names", metavar="[HW]...", nargs=-1)
@click.option("--check", is_flag=True, help="Build nothing; fail if student/ is out of date.")
def build(names: Sequence[str], check: bool) -> int:
    """Builds student/ and dist/ (all, or those named).

    \b
    Examples:
      autograder build
      autograder build hw4_pytorch_init_norm --check
    """
    from autograder.commands import authors

    return authors.build(names, check)


@cli.command()
@click.argument("name", metavar="HW")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=_FOLDER)
@click.option("-o", "--out", type=_FOLDER, default=Path("out"), show_default=True, help="Folder for results and pages.")
@click.option("-j", "--jobs", metavar="N", type=click.IntRange(min=1), help="Grader processes.  [default: one a core]")
@click.option(
    "--isolation",
    type=click.Choice(["auto", "bwrap", "uid", "none"]),
    default="auto",
    show_default=True,
    help="How students' code is confined; `none` only for code you trust.",
)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True, help="What to print."
)
@click.option("--cluster", metavar="ADDR", help="Grade on the workers of this Dask scheduler.")
@click.option("--roster", metavar="CSV", type=_FOLDER, help="Class list: who is without a submission gets a row, too.")
def grade(
    name: str,
    paths: Sequence[Path],
    out: Path,
    jobs: int | None,
    isolation: str,
    format_: str,
    cluster: str | None,
    roster: Path | None,
) -> int:
    """Grades notebooks, a whole class at once.

    PATH is a file, a folder, a student's zip, or a download from a learning platform; any number of them.

    Results go to OUT/results, marks to OUT/grades.csv, pages to OUT/report. A second run goes on where the first
    stopped. Ends with 1 if some submission could not be graded.

    \b
    Examples:
      autograder grade hw4_pytorch_init_norm submissions/ -o out -j 4
      autograder grade hw4_pytorch_init_norm moodle.zip late/anna.ipynb --roster class.csv
    """
    from autograder.commands import grading

    return grading.grade(name, paths, grading.GradeOptions(out, jobs, isolation, format_, cluster, roster))


@cli.command()
@click.argument("out", metavar="OUT", type=_FOLDER)
def report(out: Path) -> int:
    """Makes the HTML pages again from the results in OUT.

    \b
    Example:
      autograder report out
    """
    from autograder.commands import grading

    return grading.report(grading.require_folder(out))


@cli.command()
@click.argument("old", metavar="OLD", type=_FOLDER)
@click.argument("new", metavar="NEW", type=_FOLDER)
def diff(old: Path, new: Path) -> int:
    """Shows whose marks changed between two gradings.

    By how much, and on which case.

    \b
    Example:
      autograder diff out-before out
    """
    from autograder.commands.difference import difference
    from autograder.commands.grading import require_folder

    return difference(require_folder(old), require_folder(new))


@cli.command()
@click.argument("names", metavar="[HW]...", nargs=-1)
@click.option("--repeat", metavar="N", type=click.IntRange(min=1), default=1, show_default=True, help="How many times.")
@click.option(
    "--every", metavar="N", type=click.IntRange(min=1), default=1, help="Every N-th mistake and alternative only."
)
def validate(names: Sequence[str], repeat: int, every: int) -> int:
    """Proves that the grading is right.

    Solutions and alternatives must get full marks, and each known mistake must be caught by the case that should.

    \b
    Example:
      autograder validate hw4_pytorch_init_norm --repeat 3
    """
    from autograder.commands import authors

    return authors.validate(names, repeat, every)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; errors are one line on stderr."""
    try:
        code = cli.main(arguments, prog_name="autograder", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as no_command:
        click.echo(no_command.format_message(), err=True)
        return 2
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "autograder"
        return _failed(f"{error.format_message()} (see {command} --help)", 2)
    except click.ClickException as error:
        return _failed(error.format_message(), 2)
    except AutograderError as error:
        return _failed(str(error), 2)
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", 130)
    except BrokenPipeError:
        # Whoever read the output has gone; nothing more can be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(f"{where}{error.strerror or error}", 2)
    return int(code or 0)


def _failed(message: str, code: int) -> int:
    from autograder.plaintext import one_line

    click.echo(f"autograder: {one_line(message, 2000)}", err=True)
    return code


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(run())
