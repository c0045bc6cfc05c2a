/* ngtcp2 as a host of Ackclock in virtual time.
 *
 * ngtcp2 has neither sockets nor a clock: each call has the time of the message. TLS is that of GnuTLS; flow control
 * windows are those of ngtcp2's own client and server. docs/guests.md has the messages. The application is up to 64 KiB
 * ahead of the stream when it writes, and ahead by one read of at most 32 KiB when it reads. */

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if NGTCP2_VERSION_NUM < 0x000c00 || NGTCP2_VERSION_NUM >= 0x000d00
#error "this program is for ngtcp2 0.12"
#endif

enum { HELLO = 1, RECEIVE = 2, RUN = 3, OPEN = 5, WRITE = 6, READ = 7, FINISH = 8, RESET = 9 };
enum { SEND = 17, DEADLINE = 19, SIGNAL = 20 };
enum { CONNECTED, WRITABLE, READABLE, CLOSED, ABORTED, SIGNALS };

#define BUFFERED (64 << 10)
#define CHUNK (32 << 10)
#define ID 8
#define NEVER UINT64_MAX

static const char CERTIFICATE[] =
#include "certificate.h"
    ;
static const char KEY[] =
#include "key.h"
    ;

/* What the application writes. */
static const uint8_t ZEROS[BUFFERED];

/* What HELLO says. */
static int is_server, six;
static size_t payload;
static char cc[32], logs[4096], log_name[256];
static uint64_t drawn = 1;
static FILE *log_file;

static uint64_t now;
static ngtcp2_conn *conn;
static ngtcp2_crypto_conn_ref reference;
static gnutls_session_t session;
static gnutls_certificate_credentials_t credentials;
static struct sockaddr_storage own_address, peer_address;
static socklen_t address_length;

static int64_t stream = -1;
static int connected, finished, over, ended, closing, end_sent, refused, reported;
static uint64_t pending, received, available, taken;
static uint64_t lost, data_packets, repeated, sent_to;
/* Stream bytes of the packets logged since the last datagram. */
static uint64_t stream_bytes;
static int signals[SIGNALS], signal_order[SIGNALS], signal_count;

static uint8_t *out;
static size_t out_length, out_room;

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

/* Random bytes of the seed: xorshift64*. */
static void draw(uint8_t *into, size_t length) {
  for (size_t i = 0; i < length; i++) {
    drawn ^= drawn >> 12;
    drawn ^= drawn << 25;
    drawn ^= drawn >> 27;
    into[i] = (uint8_t)((drawn * 0x2545f4914f6cdd1dULL) >> 56);
  }
}

static void emit(int signal) {
  if (!signals[signal]) {
    signals[signal] = 1;
    signal_order[signal_count++] = signal;
  }
}

static void put(const void *bytes, size_t length) {
  if (out_length + length > out_room) {
    out_room = 2 * (out_length + length);
    out = realloc(out, out_room);
    if (!out) fail("no memory");
  }
  memcpy(out + out_length, bytes, length);
  out_length += length;
}

static void put_head(uint32_t kind, uint32_t length, uint64_t at) {
  put(&kind, 4);
  put(&length, 4);
  put(&at, 8);
}

/* ngtcp2's log: one record in each call, in parts. */
static char record[1 << 16];
static size_t record_length;

static uint64_t number_after(const char *text, const char *name) {
  const char *found = strstr(text, name);
  return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static void read_record(void) {
  record[record_length] = 0;
  record_length = 0;
  if (strstr(record, "\"recovery:packet_lost\"")) lost++;
  if (!strstr(record, "\"transport:packet_sent\"")) return;
  uint64_t bytes = 0;
  int again = 0;
  for (const char *frame = record; (frame = strstr(frame, "\"frame_type\":\"stream\"")); frame++) {
    uint64_t offset = number_after(frame, "\"offset\":"), length = number_after(frame, "\"length\":");
    bytes += length;
    again |= length > 0 && offset < sent_to;
    if (offset + length > sent_to) sent_to = offset + length;
  }
  data_packets += bytes > 0;
  repeated += again;
  stream_bytes += bytes;
}

static void write_log(void *user, uint32_t flags, const void *data, size_t length) {
  (void)user;
  (void)flags;
  for (size_t i = 0; i < length; i++) {
    char byte = ((const char *)data)[i];
    if (record_length + 1 < sizeof record) record[record_length++] = byte;
    if (byte == '\n') read_record();
  }
  if (log_file) fwrite(data, 1, length, log_file);
}

static ngtcp2_conn *get_conn(ngtcp2_crypto_conn_ref *ref) {
  (void)ref;
  return conn;
}

static void draw_for_conn(uint8_t *into, size_t length, const ngtcp2_rand_ctx *context) {
  (void)context;
  draw(into, length);
}

static int new_id(ngtcp2_conn *c, ngtcp2_cid *id, uint8_t *token, size_t length, void *user) {
  (void)c;
  (void)user;
  draw(id->data, length);
  id->datalen = length;
  draw(token, NGTCP2_STATELESS_RESET_TOKENLEN);
  return 0;
}

static int on_completed(ngtcp2_conn *c, void *user) {
  (void)user;
  connected = 1;
  emit(CONNECTED);
  if (!is_server && ngtcp2_conn_open_bidi_stream(c, &stream, NULL)) fail("no stream");
  return 0;
}

static int on_data(ngtcp2_conn *c, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data, size_t length,
                   void *user, void *stream_user) {
  (void)c, (void)offset, (void)data, (void)user, (void)stream_user;
  stream = id;
  received += length;
  ended |= !!(flags & NGTCP2_STREAM_DATA_FLAG_FIN);
  emit(READABLE);
  return 0;
}

static int on_close(ngtcp2_conn *c, uint32_t flags, int64_t id, uint64_t error, void *user, void *stream_user) {
  (void)c, (void)flags, (void)id, (void)error, (void)user, (void)stream_user;
  finished = 1;
  return 0;
}

static socklen_t set_address(struct sockaddr_storage *into, int server) {
  memset(into, 0, sizeof *into);
  if (six) {
    struct sockaddr_in6 *address = (struct sockaddr_in6 *)into;
    address->sin6_family = AF_INET6;
    address->sin6_port = htons(4433);
    inet_pton(AF_INET6, server ? "2001:db8::2" : "2001:db8::1", &address->sin6_addr);
    return sizeof *address;
  }
  struct sockaddr_in *address = (struct sockaddr_in *)into;
  address->sin_family = AF_INET;
  address->sin_port = htons(4433);
  inet_pton(AF_INET, server ? "192.0.2.2" : "192.0.2.1", &address->sin_addr);
  return sizeof *address;
}

static ngtcp2_path path(void) {
  ngtcp2_path path = {{(struct sockaddr *)&own_address, address_length},
                      {(struct sockaddr *)&peer_address, address_length},
                      NULL};
  return path;
}

static void or_fail(const char *what, int result) {
  if (result < 0) fail("%s: %s", what, gnutls_strerror(result));
}

static void start_tls(void) {
  const char *ciphers = "NORMAL:-VERS-ALL:+VERS-TLS1.3:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"
                        "%DISABLE_TLS13_COMPAT_MODE";
  or_fail("credentials", gnutls_certificate_allocate_credentials(&credentials));
  or_fail("TLS", gnutls_init(&session, (is_server ? GNUTLS_SERVER : GNUTLS_CLIENT) | GNUTLS_NO_END_OF_EARLY_DATA));
  or_fail("TLS", gnutls_priority_set_direct(session, ciphers, NULL));
  if (is_server) {
    gnutls_datum_t certificate = {(unsigned char *)CERTIFICATE, sizeof CERTIFICATE - 1};
    gnutls_datum_t key = {(unsigned char *)KEY, sizeof KEY - 1};
    or_fail("certificate",
            gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM));
    if (ngtcp2_crypto_gnutls_configure_server_session(session)) fail("TLS of a server");
  } else {
    if (ngtcp2_crypto_gnutls_configure_client_session(session)) fail("TLS of a client");
    gnutls_server_name_set(session, GNUTLS_NAME_DNS, "server", 6);
  }
  or_fail("credentials", gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials));
  gnutls_datum_t protocol = {(unsigned char *)"ackclock", 8};
  or_fail("ALPN", gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY));
  reference.get_conn = get_conn;
  gnutls_session_set_ptr(session, &reference);
}

static void start(const ngtcp2_pkt_hd *first) {
  ngtcp2_callbacks callbacks = {
      .client_initial = is_server ? NULL : ngtcp2_crypto_client_initial_cb,
      .recv_client_initial = is_server ? ngtcp2_crypto_recv_client_initial_cb : NULL,
      .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
      .handshake_completed = on_completed,
      .encrypt = ngtcp2_crypto_encrypt_cb,
      .decrypt = ngtcp2_crypto_decrypt_cb,
      .hp_mask = ngtcp2_crypto_hp_mask_cb,
      .recv_stream_data = on_data,
      .stream_close = on_close,
      .recv_retry = is_server ? NULL : ngtcp2_crypto_recv_retry_cb,
      .rand = draw_for_conn,
      .get_new_connection_id = new_id,
      .update_key = ngtcp2_crypto_update_key_cb,
      .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
      .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
      .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
      .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
  };
  ngtcp2_settings settings;
  ngtcp2_transport_params parameters;
  ngtcp2_settings_default(&settings);
  ngtcp2_transport_params_default(&parameters);
  settings.initial_ts = now;
  settings.qlog.write = write_log;
  settings.cc_algo = !strcmp(cc, "reno")   ? NGTCP2_CC_ALGO_RENO
                     : !strcmp(cc, "bbr")  ? NGTCP2_CC_ALGO_BBR
                     : !strcmp(cc, "bbr2") ? NGTCP2_CC_ALGO_BBR2
                                           : NGTCP2_CC_ALGO_CUBIC;
  settings.max_window = 6 << 20;
  settings.max_stream_window = 6 << 20;
  parameters.initial_max_stream_data_bidi_local = 256 << 10;
  parameters.initial_max_stream_data_bidi_remote = 256 << 10;
  parameters.initial_max_data = 1 << 20;
  parameters.initial_max_streams_bidi = 100;
  parameters.max_idle_timeout = 30 * NGTCP2_SECONDS;
  ngtcp2_cid own = {.datalen = ID}, peer = {.datalen = 16};
  draw(own.data, own.datalen);
  ngtcp2_path way = path();
  int result;
  if (is_server) {
    parameters.original_dcid = first->dcid;
    result = ngtcp2_conn_server_new(&conn, &first->scid, &own, &way, first->version, &callbacks, &settings,
                                    &parameters, NULL, NULL);
  } else {
    draw(peer.data, peer.datalen);
    result = ngtcp2_conn_client_new(&conn, &peer, &own, &way, NGTCP2_PROTO_VER_V1, &callbacks, &settings,
                                    &parameters, NULL, NULL);
  }
  if (result) fail("a connection: %s", ngtcp2_strerror(result));
  start_tls();
  ngtcp2_conn_set_tls_native_handle(conn, session);
}

static void put_datagram(const uint8_t *bytes, size_t length, uint8_t ecn) {
  uint32_t stream_part = (uint32_t)stream_bytes;
  stream_bytes = 0;
  /* A probe of the path MTU above the interface's: the socket refuses it. */
  if (length > payload) return;
  put_head(SEND, (uint32_t)(5 + length), 0);
  put(&stream_part, 4);
  put(&ecn, 1);
  put(bytes, length);
}

static void give_up(int error) {
  if (over) return;
  over = 1;
  if (!reported) emit(ABORTED);
  if (error == NGTCP2_ERR_DRAINING || error == NGTCP2_ERR_IDLE_CLOSE) return;
  ngtcp2_connection_close_error reason;
  ngtcp2_connection_close_error_default(&reason);
  if (error) ngtcp2_connection_close_error_set_transport_error_liberr(&reason, error, NULL, 0);
  uint8_t buffer[1500];
  ngtcp2_path_storage storage;
  ngtcp2_path_storage_zero(&storage);
  ngtcp2_pkt_info info = {0};
  ngtcp2_ssize length =
      ngtcp2_conn_write_connection_close(conn, &storage.path, &info, buffer, sizeof buffer, &reason, now);
  if (length > 0) put_datagram(buffer, (size_t)length, (uint8_t)info.ecn);
}

/* Moves bytes from the stream to the application: it reads once at a time. */
static void read_ahead(void) {
  if (available || !received) return;
  available = received < CHUNK ? received : CHUNK;
  received -= available;
  if (conn && !finished) ngtcp2_conn_extend_max_stream_offset(conn, stream, available);
  if (conn) ngtcp2_conn_extend_max_offset(conn, available);
}

static int at_end(void) { return ended && !received && !available; }

static void transmit(void) {
  if (!conn || over) return;
  size_t largest = ngtcp2_conn_get_max_tx_udp_payload_size(conn);
  size_t quantum = ngtcp2_conn_get_send_quantum(conn), sent = 0;
  int blocked = 0;
  uint8_t buffer[65536];
  ngtcp2_path_storage storage;
  ngtcp2_path_storage_zero(&storage);
  for (;;) {
    ngtcp2_pkt_info info = {0};
    ngtcp2_ssize accepted = -1;
    uint64_t offered = pending;
    int ends = closing && !end_sent;
    int writes = stream >= 0 && !blocked && !finished && (offered || ends);
    ngtcp2_vec vector = {(uint8_t *)ZEROS, offered};
    uint32_t flags = writes && ends ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE;
    ngtcp2_ssize length = ngtcp2_conn_writev_stream(conn, &storage.path, &info, buffer, largest, &accepted, flags,
                                                    writes ? stream : -1, &vector, writes ? 1 : 0, now);
    if (length == NGTCP2_ERR_STREAM_DATA_BLOCKED || length == NGTCP2_ERR_STREAM_SHUT_WR) {
      blocked = 1;
      continue;
    }
    if (length < 0) {
      give_up((int)length);
      return;
    }
    if (writes && accepted >= 0) {
      pending -= (uint64_t)accepted;
      if (ends && (uint64_t)accepted == offered) end_sent = 1;
    }
    if (length == 0) break;
    put_datagram(buffer, (size_t)length, (uint8_t)info.ecn);
    sent += (size_t)length;
    if (sent + largest > quantum) break;
  }
  ngtcp2_conn_update_pkt_tx_time(conn, now);
}

static void process(uint32_t kind, const uint8_t *body, uint32_t length) {
  uint64_t number = 0;
  if (length == 8) memcpy(&number, body, 8);
  switch (kind) {
  case RECEIVE: {
    if (length < 1) fail("a datagram without ECN bits");
    ngtcp2_pkt_info info = {.ecn = body[0]};
    if (!conn) {
      ngtcp2_pkt_hd first;
      if (!is_server || ngtcp2_accept(&first, body + 1, length - 1)) return;
      start(&first);
    }
    ngtcp2_path way = path();
    int result = over ? 0 : ngtcp2_conn_read_pkt(conn, &way, &info, body + 1, length - 1, now);
    if (result) give_up(result);
    break;
  }
  case RUN:
    if (conn && !over && ngtcp2_conn_get_expiry(conn) <= now) {
      int result = ngtcp2_conn_handle_expiry(conn, now);
      if (result) give_up(result);
    }
    break;
  case OPEN:
    start(NULL);
    break;
  case WRITE: {
    uint64_t room = pending < BUFFERED ? BUFFERED - pending : 0;
    uint64_t takes = number < room ? number : room;
    refused = takes < number;
    pending += takes;
    break;
  }
  case READ:
    while (number && (available || received)) {
      read_ahead();
      uint64_t n = number < available ? number : available;
      available -= n;
      taken += n;
      number -= n;
    }
    break;
  case FINISH:
    closing = 1;
    break;
  case RESET:
    if (conn) give_up(0);
    over = 1;
    emit(ABORTED);
    break;
  default:
    fail("message %u is unknown", kind);
  }
}

static void answer(void) {
  read_ahead();
  transmit();
  if (refused && connected && pending < BUFFERED) {
    refused = 0;
    emit(WRITABLE);
  }
  /* It still acknowledges what the peer sends. */
  if (at_end() && finished && !over && !reported) {
    reported = 1;
    emit(CLOSED);
  }
  for (int i = 0; i < signal_count; i++) {
    uint8_t signal = (uint8_t)signal_order[i];
    put_head(SIGNAL, 1, 0);
    put(&signal, 1);
  }
  memset(signals, 0, sizeof signals);
  signal_count = 0;
  ngtcp2_conn_stat stat = {0};
  uint64_t deadline = NEVER;
  if (conn) ngtcp2_conn_get_conn_stat(conn, &stat);
  if (conn && !over) deadline = ngtcp2_conn_get_expiry(conn);
  /* Some timers run out after their time, not at it: no clock reads the same time twice. */
  if (deadline <= now) deadline = now + 1;
  int measured = stat.first_rtt_sample_ts != 0 && stat.first_rtt_sample_ts != UINT64_MAX;
  uint64_t numbers[] = {pending < BUFFERED ? BUFFERED - pending : 0,
                        taken,
                        available,
                        stat.cwnd,
                        stat.bytes_in_flight,
                        stat.max_tx_udp_payload_size,
                        measured ? stat.smoothed_rtt : 0,
                        measured ? stat.min_rtt : 0,
                        lost,
                        data_packets,
                        repeated};
  uint8_t end = (uint8_t)at_end();
  taken = 0;
  put_head(DEADLINE, 1 + sizeof numbers, deadline);
  put(&end, 1);
  put(numbers, sizeof numbers);
  for (size_t written = 0; written < out_length;) {
    ssize_t n = write(0, out + written, out_length - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) exit(0);
    written += (size_t)n;
  }
  out_length = 0;
}

static int read_all(uint8_t *into, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t n = read(0, into + done, length - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    done += (size_t)n;
  }
  return 1;
}

static int read_message(uint32_t *kind, uint8_t *body, uint32_t *length) {
  uint8_t head[16];
  if (!read_all(head, sizeof head)) return 0;
  memcpy(kind, head, 4);
  memcpy(length, head + 4, 4);
  memcpy(&now, head + 8, 8);
  if (*length > 1 << 17) fail("a message of %u bytes", *length);
  return read_all(body, *length);
}

static void parse_hello(char *text) {
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    char *value = strchr(line, ' ');
    if (!value) continue;
    *value++ = 0;
    if (!strcmp(line, "version") && strcmp(value, "1")) fail("version %s of the protocol is unknown", value);
    if (!strcmp(line, "side")) is_server = !strcmp(value, "server");
    if (!strcmp(line, "payload")) payload = strtoul(value, NULL, 10);
    if (!strcmp(line, "ip")) six = !strcmp(value, "6");
    if (!strcmp(line, "cc")) snprintf(cc, sizeof cc, "%s", value);
    if (!strcmp(line, "logs")) snprintf(logs, sizeof logs, "%s", value);
    // GnuTLS writes its secrets there.
    if (!strcmp(line, "keys")) setenv("SSLKEYLOGFILE", value, 1);
    if (!strcmp(line, "log")) snprintf(log_name, sizeof log_name, "%s", value);
    if (!strcmp(line, "seed"))
      for (; *value; value++) drawn = drawn * 31 + (uint8_t)*value;
  }
  if (!drawn) drawn = 1;
}

int main(void) {
  static uint8_t body[(1 << 17) + 1];
  uint32_t kind, length;
  if (!read_message(&kind, body, &length) || kind != HELLO) fail("the first message is not HELLO");
  body[length] = 0;
  parse_hello((char *)body);
  if (logs[0]) {
    char name[sizeof logs + sizeof log_name];
    snprintf(name, sizeof name, "%s/%s", logs, log_name);
    log_file = fopen(name, "w");
    if (!log_file) fail("%s: %s", name, strerror(errno));
  }
  address_length = set_address(&own_address, is_server);
  set_address(&peer_address, !is_server);
  for (;;) {
    answer();
    if (!read_message(&kind, body, &length)) break;
    process(kind, body, length);
  }
  if (conn && !over) give_up(0);
  if (conn) ngtcp2_conn_del(conn);
  if (log_file) fclose(log_file);
  return 0;
}
