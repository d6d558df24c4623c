#!/bin/sh
# Make Chromium available, so that the tests of pages in a browser run rather than skip: by Debian's package. Does nothing
# if there is one already, and says what to do where it cannot be installed.
set -u

found() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

found >/dev/null && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    echo "Chromium is not here yet: installing it." >&2
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium >/dev/null
    found >/dev/null && exit 0
fi
echo "There is no Chromium, and tests/long/test_dossier_page.py skips: install it as your system does." >&2
