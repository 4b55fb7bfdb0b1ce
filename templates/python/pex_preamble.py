"""Runs before a single file unpacks itself, and turns an error of the disk into one clear message."""


def _explain_refusals() -> None:
    import errno
    import sys
    import traceback
    from types import TracebackType

    refusals = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
    earlier = sys.excepthook

    def explain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        code = getattr(error, "errno", None)
        nowhere = code == errno.ENOENT and "temporary directory" in str(error)
        rooms = [frame.f_globals.get("__name__") for frame, _ in traceback.walk_tb(trace)]
        started = "__main__" in rooms and "runpy" in rooms[rooms.index("__main__") :]  # the package's own trouble
        if started or not (nowhere or code in refusals):
            earlier(kind, error, trace)
            return
        print(
            "error: this file cannot unpack itself\n"
            f"  why:  {str(error).partition('] ')[2] or error}\n"
            "  next: set PEX_ROOT to a writable folder with enough space, and TMPDIR to one for temporary files",
            file=sys.stderr,
        )
        sys.exit(3)

    sys.excepthook = explain


if __name__ == "__main__":
    _explain_refusals()
