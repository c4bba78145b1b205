# Builds the wheel, then installs it with the pinned versions for a user that owns nothing.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
COPY constraints.txt /wheels/
RUN pip install --no-cache-dir -c /wheels/constraints.txt "$(echo /wheels/foldlog-*.whl)[postgres,metrics,zstd]" \
    && rm -r /wheels \
    && useradd --system --create-home foldlog
USER foldlog
WORKDIR /home/foldlog
# A volume for large attachments is this user's own if it is mounted here.
RUN mkdir objects
EXPOSE 50551
ENTRYPOINT ["foldlog"]
CMD ["serve"]
