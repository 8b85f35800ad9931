#!/usr/bin/env bash
# TLS: make an authority and one certificate for scheduler, workers and client: bash dasktc-tls.sh /shared/tls
#
# Dask asks both sides of every connection for a certificate that the authority signed, whatever name is in it.
# Who can read key.pem can run code on the cluster. ca.key is needed only to sign more: keep it elsewhere.
#
#   dasktc count --tls-ca-file ca.pem --tls-cert cert.pem --tls-key key.pem --scheduler tls://host:8786 GRAPH
#
# or once and for all, in ~/.config/dask/distributed.yaml on every host:
#
#   distributed:
#     comm:
#       default-scheme: tls
#       require-encryption: true
#       tls:
#         ca-file: /shared/tls/ca.pem
#         scheduler: {cert: /shared/tls/cert.pem, key: /shared/tls/key.pem}
#         worker: {cert: /shared/tls/cert.pem, key: /shared/tls/key.pem}
#         client: {cert: /shared/tls/cert.pem, key: /shared/tls/key.pem}
set -euo pipefail
umask 077
mkdir -p "${1:?give a folder}"
cd "$1"
days=${DAYS:-365}
new=(openssl req -newkey rsa:3072 -nodes)
"${new[@]}" -x509 -days "$days" -subj "/CN=dasktc authority" -keyout ca.key -out ca.pem
"${new[@]}" -subj "/CN=dasktc" -keyout key.pem -out request.pem
openssl x509 -req -days "$days" -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem
rm -f request.pem
