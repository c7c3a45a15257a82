"""The Otter side: our verdicts through `otter run`, `otter grade` and Gradescope."""
