#!/bin/sh
# Writes the root file system of a minimal Debian 12 as a tar to standard output, from Debian's
# own signed packages: a `BASE` for base/Dockerfile on machines that reach no image registry.
# Needs root and mmdebstrap. Takes about half a minute.
set -eu
# a throw-away tree needs no fsync for each file
exec mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io bookworm -
