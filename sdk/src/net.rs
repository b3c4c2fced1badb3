//! TCP connections to the addresses that settings were given.
//!
//! A component connects by a setting of kind address, never by an address of its own:
//! the host resolves the name and lets it connect there and nowhere else.

use crate::bindings::wasi::io::streams::{InputStream, OutputStream, StreamError};
use crate::bindings::wasi::sockets::instance_network::instance_network;
use crate::bindings::wasi::sockets::ip_name_lookup::resolve_addresses;
use crate::bindings::wasi::sockets::network::{
    ErrorCode, IpAddress, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, Ipv6SocketAddress, Network,
};
use crate::bindings::wasi::sockets::tcp::{ShutdownType, TcpSocket};
use crate::bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;
use crate::content::put;
use crate::wait::wait;
use crate::{Error, ErrorKind, Result, Target};
use std::io;
use std::time::Duration;

/// How long one address may take to answer at all.
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes taken from a stream at once.
const CHUNK: usize = 64 * 1024;

/// A connection. Dropped, it is closed.
pub struct TcpStream {
    // Before the socket, which cannot go while they are there.
    input: InputStream,
    output: OutputStream,
    socket: TcpSocket,
    timeout: Option<Duration>,
}

impl TcpStream {
    /// Connects to what the setting `key`, of kind address, names: "host:port". Of several
    /// addresses of the host the first that answers is taken.
    ///
    /// # Errors
    /// `Denied` when it was not granted, `NotFound` when nothing listens there.
    pub fn connect(target: &Target, key: &str) -> Result<Self> {
        let value = target.setting(key).unwrap_or_default();
        let Some((host, port)) = value.rsplit_once(':').and_then(|(h, p)| Some((h, p.parse().ok()?))) else {
            return Err(Error::invalid(format!("`{key}` is a host and a port, not `{value}`")));
        };
        let network = instance_network();
        let failed = |code: ErrorCode| explain(code, &value);
        let names = resolve_addresses(&network, host).map_err(failed)?;
        let mut last = ErrorCode::NameUnresolvable;
        loop {
            let next = match names.resolve_next_address() {
                Err(ErrorCode::WouldBlock) => {
                    names.subscribe().block();
                    continue;
                }
                next => next.map_err(failed)?,
            };
            let Some(address) = next else { return Err(failed(last)) };
            match connect(&network, address, port) {
                Ok((socket, input, output)) => return Ok(Self { input, output, socket, timeout: None }),
                Err(code) => last = code,
            }
        }
    }

    /// How long a read or write waits for the other side before it fails with
    /// `TimedOut`; none: for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// What the other side sends, for [`splice`](crate::splice).
    pub fn input(&self) -> &InputStream {
        &self.input
    }

    /// What it is sent.
    pub fn output(&self) -> &OutputStream {
        &self.output
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn shutdown(&self) -> io::Result<()> {
        self.socket.shutdown(ShutdownType::Send).map_err(|code| io::Error::other(code.message()))
    }
}

fn connect(
    network: &Network,
    address: IpAddress,
    port: u16,
) -> Result<(TcpSocket, InputStream, OutputStream), ErrorCode> {
    let (family, address) = match address {
        IpAddress::Ipv4(address) => {
            (IpAddressFamily::Ipv4, IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address }))
        }
        IpAddress::Ipv6(address) => (
            IpAddressFamily::Ipv6,
            IpSocketAddress::Ipv6(Ipv6SocketAddress { port, flow_info: 0, address, scope_id: 0 }),
        ),
    };
    let socket = create_tcp_socket(family)?;
    socket.start_connect(network, address)?;
    loop {
        match socket.finish_connect() {
            Ok((input, output)) => return Ok((socket, input, output)),
            Err(ErrorCode::WouldBlock) => {
                wait(&socket.subscribe(), Some(CONNECT)).map_err(|_| ErrorCode::Timeout)?;
            }
            Err(code) => return Err(code),
        }
    }
}

fn explain(code: ErrorCode, value: &str) -> Error {
    let (kind, why, hint) = match code {
        ErrorCode::AccessDenied => {
            (ErrorKind::Denied, "it was not granted", "connect by a setting of kind address")
        }
        ErrorCode::ConnectionRefused => {
            (ErrorKind::NotFound, "nothing listens there", "is the server running, and is the port right?")
        }
        ErrorCode::NameUnresolvable | ErrorCode::TemporaryResolverFailure => {
            (ErrorKind::NotFound, "the name has no address", "is it spelt right?")
        }
        ErrorCode::Timeout | ErrorCode::RemoteUnreachable => {
            (ErrorKind::NotFound, "it does not answer", "is the server running, and can it be reached?")
        }
        other => {
            return Error::new(
                ErrorKind::Other,
                format!("could not connect to {value}: {}", other.message()),
            );
        }
    };
    Error::new(kind, format!("could not connect to {value}: {why}")).with_hint(hint)
}

impl io::Read for TcpStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while !buf.is_empty() {
            match self.input.read(buf.len().min(CHUNK) as u64) {
                Ok(bytes) if bytes.is_empty() => wait(&self.input.subscribe(), self.timeout)?,
                Ok(bytes) => {
                    buf[..bytes.len()].copy_from_slice(&bytes);
                    return Ok(bytes.len());
                }
                Err(StreamError::Closed) => return Ok(0),
                Err(StreamError::LastOperationFailed(error)) => return Err(lost(&error.to_debug_string())),
            }
        }
        Ok(0)
    }
}

impl io::Write for TcpStream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        put(&self.output, buf, self.timeout, failed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.blocking_flush().map_err(failed)
    }
}

fn failed(error: StreamError) -> io::Error {
    match error {
        StreamError::Closed => lost("the other side closed it"),
        StreamError::LastOperationFailed(error) => lost(&error.to_debug_string()),
    }
}

fn lost(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, format!("the connection was lost: {why}"))
}
