package import Connect
package import ConnectChannels
package import NIOCore

/// A connection with many streams: a channel handler that a session of HTTP/2 or HTTP/3 drives.
///
/// Handlers of streams and the delegate are called in `handleEvents()` and in the shutdown only. Both run as the event
/// loop's own work, never below a function that a call or the pool has called.
package protocol MultiplexedConnection: StreamConnection, ChannelInboundHandler {
  var state: ConnectionState { get }
  var context: ChannelHandlerContext? { get set }

  /// Writes what the session wants to send as far as the channel takes it, then acts on what came of it.
  func flush()

  /// The channel may be written to again.
  func didBecomeWritable()

  /// Ends the connection, since its channel is closed.
  func shutDownWithChannel()
}

extension MultiplexedConnection {
  /// Schedules the writing of everything that was submitted in this tick. It is written at the end of the current read,
  /// or else once the event loop gets to it.
  package func scheduleFlush() {
    guard !self.state.isReading, !self.state.isFlushScheduled else { return }
    self.state.isFlushScheduled = true
    self.state.eventLoop.assumeIsolated().execute {
      self.state.isFlushScheduled = false
      self.flush()
    }
  }

  // MARK: StreamConnection

  package func drain() {
    self.state.isDraining = true
    self.scheduleFlush()
  }

  package func close(failing error: ConnectError) {
    guard self.state.requestedClose == nil else { return }
    self.state.requestedClose = error
    self.scheduleFlush()
  }

  // MARK: ChannelInboundHandler

  package func handlerRemoved(context: ChannelHandlerContext) {
    self.shutDownWithChannel()
    self.context = nil
  }

  package func channelInactive(context: ChannelHandlerContext) {
    self.shutDownWithChannel()
    context.fireChannelInactive()
  }

  package func channelReadComplete(context: ChannelHandlerContext) {
    self.state.isReading = false
    self.flush()
    context.fireChannelReadComplete()
  }

  package func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable {
      self.didBecomeWritable()
      // Writing brings us here, too, in the middle of a flush.
      self.scheduleFlush()
    }
    context.fireChannelWritabilityChanged()
  }
}
