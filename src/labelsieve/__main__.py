"""`python -m labelsieve`: the command line where nothing can be installed."""

from labelsieve.cli.main import main

if __name__ == "__main__":
    main()
