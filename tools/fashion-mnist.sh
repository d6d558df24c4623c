#!/bin/sh
# Make Fashion-MNIST available, so that tests on it run rather than skip: where Debian's package puts it, or in the
# user's cache, both of which maxrr.data looks in. Does nothing if it is found already, and fails if there is no way.
#
#     tools/fashion-mnist.sh .venv/bin/python
set -u
python=$1
package=dataset-fashion-mnist
cache=${XDG_CACHE_HOME:-$HOME/.cache}/maxrr/fashion-mnist

found() {
    "$python" -c 'from maxrr.data import available; raise SystemExit(dict(available())["fashion-mnist"] is None)'
}

install() { # needs root
    [ "$(id -u)" = 0 ] || return 1
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends --reinstall $package >/dev/null
}

unpack() { # needs no rights: the package is downloaded and taken apart in a temporary folder
    (
        folder=$(mktemp -d) || exit 1
        trap 'rm -rf "$folder" "$cache/.new.$$"' EXIT
        trap 'exit 130' INT TERM
        cd "$folder" && mkdir -p lists/partial cache/archives/partial || exit 1
        # Where the system has no list of packages yet, as in a fresh container, fetch one for ourselves.
        own() { apt-get -qq -o "Dir::State::Lists=$folder/lists" -o "Dir::Cache=$folder/cache" "$@"; }
        apt-get -qq download $package 2>/dev/null || { own update && own download $package; } || exit 1
        dpkg-deb -x ./$package*.deb . && mkdir -p "$cache" || exit 1
        for file in usr/share/datasets/fashion-mnist/*.gz; do # a file in the cache is whole, or not there
            cp "$file" "$cache/.new.$$" && mv "$cache/.new.$$" "$cache/${file##*/}" || exit 1
        done
    )
}

found && exit 0
echo "Fashion-MNIST is not here yet: fetching it (31 MB)." >&2
if command -v apt-get >/dev/null; then
    install && found && exit 0
    unpack && found && exit 0
fi
"$python" -m maxrr data get fashion-mnist && found && exit 0
echo "Fashion-MNIST could not be fetched, and the tests need it: see above for the ways to get it." >&2
exit 1
