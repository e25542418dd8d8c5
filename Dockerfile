# Build: docker build --tag registry.example.com/mooring:0.1.0 .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt requirements.lock README.md LICENSE ./
COPY src src
# The cluster to try things on, and its demo: `mooring run` does not need them.
RUN rm -r src/mooring/embedded src/mooring/demo
RUN python -m venv /opt/mooring \
 && /opt/mooring/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock \
 && PIP_CONSTRAINT=constraints.txt /opt/mooring/bin/pip install --no-cache-dir --no-deps . \
 && /opt/mooring/bin/python -m compileall -q /opt/mooring

FROM python:3.13-slim
COPY --from=build /opt/mooring /opt/mooring
# Nothing is written: the root file system may be read-only.
ENV PATH=/opt/mooring/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["mooring"]
CMD ["run"]
