"""The HTML pages: one for the instructor, one for each student, made from the results alone."""

from autograder.report.pages import index_path, write_report

__all__ = ["index_path", "write_report"]
