"""Started by run_autograder, with the engine on the path."""

from autograder.otter.container import main

main()
