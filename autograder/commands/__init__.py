"""What each command of `autograder` does; the options are in `autograder.cli`."""
