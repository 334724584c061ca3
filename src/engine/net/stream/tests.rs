use super::*;

/// What a read gives. `None`: it must not be read.
struct Told(Option<ErrorKind>);

impl Read for Told {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(self.0.expect("it isn't read").into())
    }
}

#[test]
fn server_that_hung_up_has_told_why() {
    let why = |unwritten: ErrorKind, told| why_closed(unwritten.into(), &mut Told(told)).kind();
    let (closed, alert) = (ErrorKind::BrokenPipe, ErrorKind::InvalidData);
    assert_eq!(why(closed, Some(alert)), alert);
    assert_eq!(why(closed, Some(ErrorKind::ConnectionReset)), closed);
    assert_eq!(why(ErrorKind::TimedOut, None), ErrorKind::TimedOut);
}
