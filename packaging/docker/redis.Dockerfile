# Redis with the module, built from this checkout:
#
#   docker build --file packaging/docker/redis.Dockerfile --tag redis-rl .
#   docker run --rm --publish 127.0.0.1:6379:6379 redis-rl
#
# Not run yet: there was no Docker where this was written. The script that it runs is tested. Both
# images are of one Debian, so that the library finds the glibc that it was linked with.
FROM rust:1-bookworm AS build
WORKDIR /redis-rl
COPY . .
RUN packaging/install.sh /installed

FROM redis:8.2-bookworm
COPY --from=build /installed/ /
CMD ["redis-server", "--loadmodule", "/usr/lib/redis/modules/librl.so"]
