"""Archives of files."""

import pathlib
import tarfile


def unpack(archive: str | pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the files of a tar archive below a folder.

    `shutil.unpack_archive` without a filter warns in Python 3.12, and has none
    before 3.11.4.
    """
    with tarfile.open(archive) as files:
        for member in filter(tarfile.TarInfo.isfile, files):
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files.extractfile(member).read())
