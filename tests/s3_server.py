"""A small server that speaks S3's protocol, for tests: it checks every signature, and fails on request.

    with S3Server() as server:
        server.put("bucket", "key", b"contents")
        subprocess.run([...], env={**os.environ, **server.environment()})
"""
import hashlib
import hmac
import http.server
import socketserver
import threading
import urllib.parse
from xml.sax.saxutils import escape

ACCESS, SECRET, REGION = "TESTACCESSKEY", "test/secret+key", "eu-test-1"


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _quote(text, safe="-_.~"):
    return urllib.parse.quote(text, safe=safe)


def signature_fault(method, raw_path, headers, body):
    """Returns why the request's signature is wrong, or None. An implementation of its own, after AWS's document."""
    authorization = headers.get("Authorization", "")
    if not authorization.startswith("AWS4-HMAC-SHA256 "):
        return "AccessDenied"
    parts = dict(part.strip().split("=", 1) for part in authorization[17:].split(","))
    access, day, region, service, _ = parts["Credential"].split("/")
    if access != ACCESS:
        return "InvalidAccessKeyId"
    if (region, service) != (REGION, "s3"):
        return "AuthorizationHeaderMalformed"
    given = headers.get("x-amz-content-sha256", "")
    if given not in (hashlib.sha256(body).hexdigest(), "UNSIGNED-PAYLOAD"):
        return "XAmzContentSHA256Mismatch"
    path, _, query = raw_path.partition("?")
    # The path as the server understands it, encoded once.
    path = _quote(urllib.parse.unquote_to_bytes(path).decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape"), safe="/-_.~")
    pairs = sorted((_quote(k), _quote(v)) for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
    names = parts["SignedHeaders"].split(";")
    if "host" not in names or "x-amz-date" not in names:
        return "AccessDenied"
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in names)
    canonical = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs), lines, ";".join(names), given])
    stamp = headers["x-amz-date"]
    scope = f"{day}/{region}/s3/aws4_request"
    key = _hmac(_hmac(_hmac(_hmac(("AWS4" + SECRET).encode(), day), region), "s3"), "aws4_request")
    wanted = _hmac(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode('utf-8', 'surrogateescape')).hexdigest()}").hex()
    return None if hmac.compare_digest(wanted, parts["Signature"]) else "SignatureDoesNotMatch"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", headers=(), cut=False):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            try:
                self.wfile.write(body[: len(body) // 2] if cut else body)
            except ConnectionError:  # a request whose twin was answered first
                self.close_connection = True
                return
        if cut:
            self.close_connection = True
            self.wfile.flush()
            self.connection.close()

    def answer_in_chunks(self, status, body, headers):
        self.send_response(status)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for part in (body[:1000], body[1000:], b""):  # each picture has more than 1,000 bytes
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def fail(self, status, code):
        self.answer(status, f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode(), {"Content-Type": "application/xml"})

    def handle_any(self):
        store = self.server.store
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with store.lock:
            store.requests.append((self.command, self.path))
            number = len(store.requests)
        if store.signed and (fault := signature_fault(self.command, self.path, self.headers, body)):
            return self.fail(403, fault)
        action = store.fault(number, self.command, self.path) if store.fault else None
        if action == "503":
            return self.fail(503, "SlowDown")
        if action and action.startswith("/"):
            return self.answer(302, b"moved", {"Location": action})
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote_to_bytes(path[1:]).partition(b"/")
        bucket = bucket.decode()
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        getattr(self, "do_on_" + self.command.lower())(store, bucket, key, query, body, action)
        return None

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def do_on_get(self, store, bucket, key, query, body, action):
        if not key:
            return self.list(store, bucket, query)
        with store.lock:
            contents, etag = store.objects.get((bucket, key), (None, None))
        if contents is None:
            return self.fail(404, "NoSuchKey")
        if action == "change":
            store.put(bucket, key, contents[::-1] + b"!")
            contents, etag = store.objects[(bucket, key)]
        if self.headers.get("If-Match", etag) != etag:
            return self.fail(412, "PreconditionFailed")
        headers, status = {"ETag": etag, **store.extra_headers}, 200
        if (span := self.headers.get("Range")) and store.gives_ranges:
            first, last = (int(x) for x in span.removeprefix("bytes=").split("-"))
            if first >= len(contents):
                return self.answer(416, b"", {"Content-Range": f"bytes */{len(contents)}"})
            total, contents = len(contents), contents[first : last + 1]
            said = action.removeprefix("total:") if action and action.startswith("total:") else total
            headers["Content-Range"] = f"bytes {first}-{first + len(contents) - 1}/{said}"
            status = store.range_status
        if action == "chunked":
            return self.answer_in_chunks(status, contents, headers)
        self.answer(status, contents, headers, cut=action == "cut")
        if action == "close":  # without having said so
            self.close_connection = True

    def do_on_head(self, store, bucket, key, query, body, action):
        contents, etag = store.objects.get((bucket, key), (None, None))
        if contents is None:
            return self.answer(404)
        return self.answer(200, b"", {"ETag": etag, "Content-Length": str(len(contents))})

    def list(self, store, bucket, query):
        if store.listing:
            return self.answer(200, store.listing(query), {"Content-Type": "application/xml"})
        prefix, after = query.get("prefix", "").encode("utf-8", "surrogateescape"), query.get("continuation-token", "")
        keys = sorted(k for b, k in list(store.objects) if b == bucket and k.startswith(prefix))
        start = int(after) if after else 0
        page = keys[start : start + store.page]
        more = start + store.page < len(keys)
        text = "<ListBucketResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><EncodingType>url</EncodingType>"
        text += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        if more:
            text += f"<NextContinuationToken>{start + store.page}</NextContinuationToken>"
        for key in page:
            contents, etag = store.objects[(bucket, key)]
            text += f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/')}</Key><ETag>{escape(etag)}</ETag><Size>{len(contents)}</Size></Contents>"
        self.answer(200, (text + "</ListBucketResult>").encode(), {"Content-Type": "application/xml"})

    def do_on_put(self, store, bucket, key, query, body, action):
        if "uploadId" in query:
            with store.lock:
                store.uploads[query["uploadId"]][int(query["partNumber"])] = body
            return self.answer(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        return self.answer(200, b"", {"ETag": store.put(bucket, key, body)})

    def do_on_post(self, store, bucket, key, query, body, action):
        if "uploads" in query:
            with store.lock:
                number = f"upload-{len(store.uploads)}"
                store.uploads[number] = {}
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>".encode())
        if action == "join":
            return self.answer(200, b"<Error><Code>InternalError</Code></Error>")
        parts = store.uploads.pop(query["uploadId"])
        assert sorted(parts) == list(range(1, len(parts) + 1)) and body.count(b"<Part>") == len(parts)
        digests = b"".join(hashlib.md5(parts[i]).digest() for i in sorted(parts))
        etag = store.put(bucket, key, b"".join(parts[i] for i in sorted(parts)), f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"')
        return self.answer(200, f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>".encode())

    def do_on_delete(self, store, bucket, key, query, body, action):
        with store.lock:
            store.uploads.pop(query.get("uploadId"), None)
            store.aborted += 1
        return self.answer(204)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


class S3Server:
    """`fault(number, method, path)` gives None, "503", "cut", "chunked", "close" (after a whole answer), "change" (the object, before it is read), "total:N" (what a range says of the whole), "join" (a failure in a 200) or a Location."""

    def __init__(self, signed=True):
        self.lock, self.objects, self.uploads, self.requests = threading.Lock(), {}, {}, []
        self.signed, self.fault, self.page, self.aborted = signed, None, 1000, 0
        self.range_status, self.gives_ranges, self.extra_headers = 206, True, {}
        self.listing = None  # instead of the true one: a function from the query to the document

    def __enter__(self):
        self.server = _Server(("127.0.0.1", 0), Handler)
        self.server.store = self
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def put(self, bucket, key, contents, etag=None):
        key = key if isinstance(key, bytes) else key.encode()
        etag = etag or f'"{hashlib.md5(contents).hexdigest()}"'
        with self.lock:
            self.objects[(bucket, key)] = (contents, etag)
        return etag

    def keys(self, bucket, prefix=""):
        return sorted(k.decode() for b, k in list(self.objects) if b == bucket and k.startswith(prefix.encode()))

    def get(self, bucket, key):
        return self.objects[(bucket, key.encode())][0]

    def put_folder(self, bucket, prefix, folder):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(bucket, prefix + str(path.relative_to(folder)), path.read_bytes())

    def environment(self, cache):
        signing = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET} if self.signed else {"AWS_NO_SIGN_REQUEST": "true"}
        return {"AWS_ENDPOINT_URL": self.url, "AWS_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", "WEIR_CACHE_DIR": str(cache), **signing}
