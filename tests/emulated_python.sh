#!/bin/sh
# Makes a Python on an emulated processor: emulated_python.sh avx2|arm64 VENV
#
# avx2 is a Haswell with the packages of VENV. arm64 is a Neoverse N1 with Debian
# 12, its Python 3.11, and wheels that VENV's uv chooses. QEMU reads the files
# below `root` instead of those of this machine with the same paths, so that no
# chroot is needed. Debian 12's own QEMU 7.2 computes int8 wrongly on a Haswell.
set -eu
cd "${0%/*}/.."

name=$1 venv=$2 folder=$PWD/.emulation/$1
if ! command -v mmdebstrap >/dev/null; then
    echo "make $name needs mmdebstrap:" \
        "apt install mmdebstrap debian-archive-keyring" >&2
    exit 1
fi

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/root"

# Unpacks the PATHS of a Debian SUITE with some packages into $folder:
# unpack SUITE FOLDER PATHS OPTIONS
unpack() {
    suite=$1 target=$2 paths=$3
    shift 3
    mmdebstrap --quiet --variant=extract "$@" "$suite" - |
        tar -x --no-same-owner -C "$target" $paths
}

# The launcher is a script, which subprocesses of Python start too.
launcher() {
    cat >"$folder/bin/python"
    chmod +x "$folder/bin/python"
}

case $name in
avx2)
    unpack trixie "$folder" ./usr/bin/qemu-x86_64 --include=qemu-user
    instructions='\(avx512\|avx_\|amx_\)[a-z0-9_]*'
    mkdir "$folder/root/proc"
    sed "s/ $instructions//g" /proc/cpuinfo >"$folder/root/proc/cpuinfo"
    cp "$venv/pyvenv.cfg" "$folder"
    ln -s "$(realpath "$venv")/lib" "$folder/lib"
    # In NumPy's AVX2 code, masked loads beyond a page fault in QEMU.
    launcher <<END
#!/bin/sh
export QEMU_CPU=Haswell-noTSX NPY_DISABLE_CPU_FEATURES=X86_V3
exec $folder/usr/bin/qemu-x86_64 -L $folder/root -0 "\$0" \\
    $(realpath "$venv/bin/python") "\$@"
END
    ;;
arm64)
    unpack trixie "$folder" ./usr/bin/qemu-aarch64 --include=qemu-user
    unpack bookworm "$folder/root" "./lib ./usr" --arch=arm64 \
        --include=python3.11,libstdc++6,libgomp1
    "$venv/bin/uv" pip install --quiet --requirements requirements/dev.txt \
        --python-version 3.11 --python-platform aarch64-manylinux_2_36 \
        --only-binary :all: --target "$folder/lib/python3.11/site-packages"
    echo "home = /usr/bin" >"$folder/pyvenv.cfg"
    launcher <<END
#!/bin/sh
export QEMU_CPU=neoverse-n1
exec $folder/usr/bin/qemu-aarch64 -L $folder/root -0 "\$0" \\
    $folder/root/usr/bin/python3.11 "\$@"
END
    ;;
esac
