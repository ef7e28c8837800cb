# docker build -t stepsim . && docker run --rm stepsim run llama3-8b-dgx-h100-8
FROM debian:bookworm-20250224 AS build
COPY . /src
WORKDIR /src
RUN scripts/make_packages.sh /packages

FROM debian:bookworm-20250224-slim
COPY --from=build /packages /packages
RUN apt-get update && apt-get install --yes --no-install-recommends /packages/stepsim_*.deb \
    /packages/python3-stepsim_*.deb && rm -rf /packages /var/lib/apt/lists/*
ENTRYPOINT ["stepsim"]
