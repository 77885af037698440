#!/bin/sh
# Writes the root file system of a minimal Debian 12 as a tar to standard output, from Debian's
# own signed packages: a `BASE` for base/Dockerfile on machines that reach no image registry.
# Needs root and mmdebstrap. Takes about half a minute.
set -eu
exec mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm -
