"""Everything that runs where student code runs. Imports nothing of the trusted side.

The sandbox binds this package alone, so a module here may import the standard library, the installed
packages and its siblings, and nothing else of `autograder`.
"""
