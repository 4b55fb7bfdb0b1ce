"""Compilers and other programs of this machine that stages use beside Python packages."""
