"""Reference solutions, one module per assignment."""
