// A server of HTTP for tests.
#pragma once

#include <string>

namespace weir::launch::testing {

// For "python3 -c": $1 is the port. It answers 503 until it has been asked $2 times, then 200; on SIGTERM it
// says "bye" and ends with status 0. Its children and its words are in what it says: "child=PID".
inline constexpr char kSmallServer[] = R"(
import http.server, os, signal, subprocess, sys
port, busy = int(sys.argv[1]), int(sys.argv[2])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global busy
        busy -= 1
        self.send_response(200 if busy < 0 and self.path == '/v2/health/ready' else 503)
        self.end_headers()
        if busy >= 0: self.wfile.write(b'{"error": "still loading"}')
    def log_message(self, *words): pass
def bye(*ignored):
    print('bye', flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, bye)
server = http.server.HTTPServer((sys.argv[3] if len(sys.argv) > 3 else '127.0.0.1', port), Answer)
child = subprocess.Popen(['sleep', '1000'], start_new_session=True)
print('child=%d' % child.pid, flush=True)
server.serve_forever()
)";

}  // namespace weir::launch::testing
