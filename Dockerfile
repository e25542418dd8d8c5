# Build: docker build --tag registry.example.com/moorage:0.1.0 .
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt requirements.lock README.md LICENSE ./
COPY src src
# The cluster to try things on, and its demo: `moorage run` does not need them.
RUN rm -r src/moorage/embedded src/moorage/demo
RUN python -m venv /opt/moorage \
 && /opt/moorage/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock \
 && PIP_CONSTRAINT=constraints.txt /opt/moorage/bin/pip install --no-cache-dir --no-deps . \
 && /opt/moorage/bin/python -m compileall -q /opt/moorage

FROM python:3.13-slim
COPY --from=build /opt/moorage /opt/moorage
# Nothing is written: the root file system may be read-only.
ENV PATH=/opt/moorage/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["moorage"]
CMD ["run"]
