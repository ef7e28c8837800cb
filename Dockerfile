# docker build -t stepsim . && docker run --rm stepsim run llama3-8b-dgx-h100-8
FROM debian:bookworm AS build
COPY . /src
WORKDIR /src
RUN scripts/install_dependencies.sh --with-packages && scripts/make_packages.sh /packages

FROM debian:bookworm-slim
COPY --from=build /packages /packages
RUN apt-get update && apt-get install --yes --no-install-recommends /packages/stepsim_*.deb \
    /packages/python3-stepsim_*.deb && rm -rf /packages /var/lib/apt/lists/*
ENTRYPOINT ["stepsim"]
