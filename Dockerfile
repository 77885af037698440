# The harness itself: command line and, later, its servers, talking to a Docker endpoint.
#
#   docker build -t harness .
#   docker run --rm -v /var/run/docker.sock:/var/run/docker.sock --group-add $(stat -c %g /var/run/docker.sock) \
#     -v "$PWD":/repo:ro -w /repo harness exec -- id
#
# Whoever may use that socket is root on the machine behind it: give it only to an image you
# built yourself. `pip wheel` into wheels/ first to build where no package index is reached:
#   docker build --build-arg PIP_NO_INDEX=1 --build-arg PIP_FIND_LINKS=/src/wheels -t harness .
ARG BASE=debian:bookworm-slim
FROM ${BASE} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      gcc libc6-dev python3 python3-venv \
 && rm -rf /var/lib/apt/lists/*
ARG PIP_NO_INDEX
ARG PIP_FIND_LINKS
COPY . /src
RUN python3 -m venv /opt/harness \
 && /opt/harness/bin/pip install --no-cache-dir --disable-pip-version-check /src

FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home harness
COPY --from=build /opt/harness /opt/harness
ENV PATH=/opt/harness/bin:$PATH LANG=C.UTF-8
USER harness
ENTRYPOINT ["harness"]
