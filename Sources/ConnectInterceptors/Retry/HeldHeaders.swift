internal import Connect
internal import NIOCore

/// The headers of a stream while they wait for the next result, so that the attempt can still be retried.
struct HeldHeaders {
  private let result: StreamResult<ByteBuffer>
  private let proceed: StreamFunction.ResultProceed

  init(_ result: StreamResult<ByteBuffer>, _ proceed: StreamFunction.ResultProceed) {
    self.result = result
    self.proceed = proceed
  }

  func release() {
    self.proceed(self.result)
  }
}
