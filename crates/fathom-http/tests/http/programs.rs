//! Servers of others: Apache with its WebDAV modules.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use fathom_conformance::{BLOCKS, content};

use crate::server::name;

/// Running Apache with a folder of blocks, which ends with this value.
pub(crate) struct Apache {
    folder: PathBuf,
    port: u16,
    child: Child,
}

impl Apache {
    /// Starts it; `None` if it is not installed. With `tls`, it has a certificate of its own, and
    /// with `password`, a user `me`.
    pub(crate) fn start(tls: bool, password: Option<&str>) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let program = ["/usr/sbin/apache2", "/usr/bin/apache2"];
        let found = program.iter().find(|program| fs::exists(program).unwrap());
        let (Some(program), true) = (
            found,
            fs::exists(format!("{MODULES}/mod_dav_fs.so")).unwrap(),
        ) else {
            println!("skipped: no apache2");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("fathom-http-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(folder.join("root/b")).unwrap();
        for block in 0..BLOCKS {
            let path = format!("root{}", name(block));
            fs::write(folder.join(path), content(block)).unwrap();
        }
        // Another process may take the port in between; no test has seen it.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        if tls {
            certificate(&folder)?;
        }
        if let Some(password) = password {
            // Apache's old form of a password: SHA-1.
            fs::write(folder.join("users"), format!("me:{{SHA}}{password}\n")).unwrap();
        }
        let text = configuration(&folder, port, tls, password.is_some());
        fs::write(folder.join("conf"), text).unwrap();
        let _no_root = Command::new("chown")
            .args(["-R", "www-data"])
            .arg(&folder)
            .status();
        let mut command = Command::new(program);
        command
            .arg("-f")
            .arg(folder.join("conf"))
            .arg("-DFOREGROUND");
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut apache = Self {
            folder,
            port,
            child,
        };
        apache.wait_for_socket();
        Some(apache)
    }

    fn wait_for_socket(&mut self) {
        for _ in 0..500 {
            if std::net::TcpStream::connect(self.host()).is_ok() {
                return;
            }
            let ended = self.child.try_wait().unwrap();
            let log = || fs::read_to_string(self.folder.join("error")).unwrap_or_default();
            assert!(ended.is_none(), "apache2 ended: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
        panic!("apache2 does not listen");
    }

    pub(crate) fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    pub(crate) fn object(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.folder.join(format!("root{path}"))).ok()
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        // Its children end with it, but not if it is killed at once.
        let _ended = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        let _reaped = self.child.wait();
        let _removed = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the text of Apache's configuration.
fn configuration(folder: &Path, port: u16, tls: bool, password: bool) -> String {
    let place = folder.display();
    let mut text = format!(
        "ServerRoot {place}\nPidFile {place}/pid\nErrorLog {place}/error\n\
         Listen 127.0.0.1:{port}\nServerName localhost\nDocumentRoot {place}/root\n\
         DavLockDB {place}/lock\nUser www-data\nGroup www-data\n\
         StartServers 1\nMinSpareThreads 1\nThreadsPerChild 4\nMaxRequestWorkers 4\n"
    );
    let mut needed = vec!["mpm_event", "authz_core", "dav", "dav_fs"];
    if tls {
        needed.extend(["socache_shmcb", "ssl"]);
        text += &format!(
            "SSLEngine on\nSSLCertificateFile {place}/cert\nSSLCertificateKeyFile {place}/key\n"
        );
    }
    let mut guard = "Require all granted".to_owned();
    if password {
        needed.extend(["authn_core", "authn_file", "auth_basic", "authz_user"]);
        guard =
            format!("AuthType Basic\nAuthName x\nAuthUserFile {place}/users\nRequire valid-user");
    }
    let loads = needed
        .iter()
        .map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n"));
    let loads: String = loads.collect();
    loads + &text + &format!("<Directory {place}/root>\nDav On\n{guard}\n</Directory>\n")
}

/// Makes a certificate that no one has signed; `None` without openssl.
pub(crate) fn certificate(folder: &Path) -> Option<()> {
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
    ]);
    command.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost"]);
    command.arg("-keyout").arg(folder.join("key"));
    command.arg("-out").arg(folder.join("cert"));
    match command.stderr(Stdio::null()).status() {
        Ok(status) => assert!(status.success(), "{command:?}"),
        Err(error) => {
            println!("skipped: openssl: {error}");
            return None;
        }
    }
    Some(())
}

const MODULES: &str = "/usr/lib/apache2/modules";
