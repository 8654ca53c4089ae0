# pawl alone in an empty image, to look at locks with, and to copy into the image of the command
# that it shall run:
#
#     docker build -t pawl .
#     COPY --from=pawl /pawl /usr/local/bin/pawl
#
# It needs no other file; the certificates are for databases with TLS. Set PAWL_URL: there is no
# home folder for the default file.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -tags grpcnotrace -ldflags='-s -w' -o /pawl ./cmd/pawl

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /pawl /pawl
USER 65534:65534
ENTRYPOINT ["/pawl"]
