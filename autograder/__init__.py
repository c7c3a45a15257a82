"""Automated grading of coursework notebooks; the verdict is reached where no student code runs."""

__version__ = "0.1.0"
