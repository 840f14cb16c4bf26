"""Files and folders that are no pictures: whether to look at them at all, and what to call them."""

import os

# Folders that systems put among people's files: previews and what was deleted are no pictures of a class.
OF_SYSTEMS = ("__MACOSX", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "lost+found")
# Pictures in formats that are not read: told apart from files that are none.
UNREAD = frozenset(
    [".heic", ".heif", ".avif", ".jp2", ".j2k", ".jxl", ".svg", ".ico", ".tga", ".psd", ".eps", ".dcm", ".nii", ".exr", ".hdr"]
    + [".raw", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".pdf", ".mp4", ".mov", ".avi", ".npy"]
)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is nobody's picture by its name alone."""
    return name[:1] == "." or name in OF_SYSTEMS


def what_else(name: str) -> str:
    """What a file is that is not read, in words."""
    ending = os.path.splitext(name)[1].lower()  # noqa: PTH122
    if ending in UNREAD:
        return f"format that is not read ({ending})"
    return "not a picture" if ending else "file without an ending"
