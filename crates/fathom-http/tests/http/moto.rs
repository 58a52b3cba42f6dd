//! moto, a server that keeps S3 buckets in memory, over TLS.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::programs::certificate;

/// Running server with an empty bucket, which ends with this value.
pub(crate) struct Moto {
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Moto {
    /// Starts the server that `FATHOM_MOTO` names, else `moto_server` of the PATH; `None` without
    /// one.
    pub(crate) fn start() -> Option<Self> {
        let program = env::var("FATHOM_MOTO").unwrap_or_else(|_| "moto_server".to_owned());
        let found = Command::new(&program).arg("--help").output();
        if !found.is_ok_and(|output| output.status.success()) {
            println!("skipped: no moto_server (pip install 'moto[server]')");
            return None;
        }
        let folder = env::temp_dir().join(format!("fathom-moto-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        certificate(&folder)?;
        // Another process may take the port in between; no test has seen it.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.arg("-c").arg(folder.join("cert"));
        command.arg("-k").arg(folder.join("key"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut server = Self {
            folder,
            port,
            child,
        };
        server.wait_for_socket();
        server.make_bucket().then_some(server)
    }

    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    fn wait_for_socket(&mut self) {
        for _ in 0..3_000 {
            if TcpStream::connect(self.host()).is_ok() {
                return;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "moto_server ended");
            thread::sleep(Duration::from_millis(20));
        }
        panic!("moto_server does not listen");
    }

    /// Makes the bucket `bucket`; false without curl.
    fn make_bucket(&self) -> bool {
        let mut command = Command::new("curl");
        command.args(["-sfk", "-X", "PUT", "-o", "/dev/null"]);
        command.arg(format!("https://{}/bucket", self.host()));
        match command.status() {
            Ok(status) => assert!(status.success(), "{command:?}"),
            Err(error) => {
                println!("skipped: curl: {error}");
                return false;
            }
        }
        true
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = fs::remove_dir_all(&self.folder);
    }
}
