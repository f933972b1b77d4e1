"""``python -m journeyman``: the command line, for where the program itself is not on the path."""

from journeyman.doors.cli import main

if __name__ == "__main__":
    main()
