/* Cells of recurrent layers, and functions of their gates, as Python numbers them, too. */

#ifndef ONEDNN_RECURRENT_H
#define ONEDNN_RECURRENT_H

enum cell { GRU, LBR_GRU, LSTM, RNN };
enum function { IDENTITY, SIGMOID, TANH, RELU };

#endif
